#include "sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "sim/host.h"

namespace gpuwright::sim {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view toml) {
  const auto scenario = parse_scenario(toml, "s.toml");
  return scenario ? "" : scenario.error().message();
}

Scenario parsed(std::string_view toml) {
  auto scenario = parse_scenario(toml, "s.toml");
  EXPECT_TRUE(scenario.has_value()) << (scenario ? "" : scenario.error().message());
  return scenario ? *std::move(scenario) : Scenario{};
}

TEST(Scenario, EveryBuiltInOneIsSoundAndSaysWhatItIs) {
  const auto all = built_in_scenarios();
  EXPECT_GE(all.size(), 12U);
  for (const auto& one : all) {
    EXPECT_TRUE(Host::from_scenario(one.name).has_value()) << Host::from_scenario(one.name).error().message();
    EXPECT_FALSE(one.summary.empty()) << one.name;
  }
  EXPECT_TRUE(Host::from_scenario(default_scenario()).has_value());
}

TEST(Scenario, NamesTheNearestOfTheBuiltInOnes) {
  const auto host = Host::from_scenario("8xh10");
  ASSERT_FALSE(host.has_value());
  EXPECT_THAT(host.error().message(), HasSubstr("8xh100"));
  EXPECT_FALSE(Host::from_scenario("./no/such/file.toml").has_value());
}

TEST(Scenario, TakesFactsFromTheCatalogue) {
  const Scenario scenario = parsed("[[gpu]]\nid = \"rtx-4090-24gb\"\ncount = 2\n");
  ASSERT_EQ(scenario.gpus.size(), 2U);
  const GpuSpec& gpu = scenario.gpus[1];
  EXPECT_EQ(gpu.name, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(gpu.compute_major, 8);
  EXPECT_EQ(gpu.compute_minor, 9);
  EXPECT_EQ(gpu.pcie_generation_max, 4);
  EXPECT_EQ(gpu.pcie_width_max, 16);
  EXPECT_EQ(gpu.power_limit, 450);
  EXPECT_FALSE(gpu.ecc.has_value());
  EXPECT_TRUE(gpu.serial.empty());
  EXPECT_NE(scenario.gpus[0].uuid, gpu.uuid);
  EXPECT_EQ(parsed("[[gpu]]\nid = \"rtx-4090-24gb\"\ncount = 2\n").gpus[1].uuid, gpu.uuid);
}

TEST(Scenario, SelfIsThisProcess) {
  const Scenario scenario = parsed("[[gpu]]\nid = \"l4-24gb\"\n[[process]]\npid = \"self\"\nmemory_mib = 10\n");
  ASSERT_EQ(scenario.processes.size(), 1U);
  EXPECT_EQ(scenario.processes[0].pid, getpid());
}

TEST(Scenario, AListOfPidsIsOneAGpu) {
  const Scenario scenario = parsed("[[gpu]]\nid = \"l4-24gb\"\ncount = 3\n[[process]]\npid = [5, 6, 7]\n");
  ASSERT_EQ(scenario.processes.size(), 3U);
  EXPECT_EQ(scenario.processes[2].pid, 7);
  EXPECT_THAT(scenario.processes[2].gpus, testing::ElementsAre(2));
}

TEST(Scenario, ErrorsNameTheLine) {
  EXPECT_THAT(error_of("hostname = \"a\"\n[[gpu]]\nid = \"no-such-gpu\"\n"), HasSubstr("s.toml:3: id"));
  EXPECT_THAT(error_of("[[gpu]]\nid = \"l4-24gb\"\nlaod = 0.3\n"), HasSubstr("did you mean load?"));
  EXPECT_THAT(error_of("[[gpu]]\nid = \"l4-24gb\"\n\nload = 1.5\n"), HasSubstr("s.toml:4:"));
  EXPECT_THAT(error_of("x = [\n"), HasSubstr("s.toml:1:"));
}

TEST(Scenario, RefusesWhatCannotBe) {
  const std::string gpu = "[[gpu]]\nid = \"l4-24gb\"\n";
  EXPECT_THAT(error_of(gpu + "count = 65\n"), HasSubstr("64"));
  EXPECT_THAT(error_of("[[gpu]]\nid = \"mi300x-192gb\"\n"), HasSubstr("NVIDIA"));
  EXPECT_THAT(error_of(gpu + "mig = true\n"), HasSubstr("MIG"));
  EXPECT_THAT(error_of(gpu + "graphics_mhz = [2000, 100]\n"), HasSubstr("[idle, full]"));
  EXPECT_THAT(error_of(gpu + "load = {points = [[5, 0.1], [2, 0.3]]}\n"), HasSubstr("must not decrease"));
  EXPECT_THAT(error_of(gpu + "load = {kind = \"sine\", points = [[5, 0.1]]}\n"), HasSubstr("points or a kind"));
  EXPECT_THAT(error_of(gpu + "load = {kind = \"saw\"}\n"), HasSubstr("is not one of"));
  EXPECT_THAT(error_of(gpu + "[[process]]\npid = 3\nmemory_mib = 30000\n"), HasSubstr("hold more than"));
  EXPECT_THAT(error_of(gpu + "[[process]]\nuser = \"a\"\n"), HasSubstr("needs a pid"));
  EXPECT_THAT(error_of(gpu + "[[process]]\npid = 0\n"), HasSubstr("whole number from 1"));
  EXPECT_THAT(error_of(gpu + "[[process]]\npid = [1, 2]\n"), HasSubstr("2 pids for 1 GPUs"));
  EXPECT_THAT(error_of(gpu + "[[process]]\npid = 1\ngpus = [1]\n"), HasSubstr("from 0 to 0"));
  EXPECT_THAT(error_of(gpu + "[[process]]\npid = 1\nstart = 5\nend = 4\n"), HasSubstr("after the start"));
  EXPECT_THAT(error_of(gpu + "[[fault]]\nkind = \"tired\"\n"), HasSubstr("is not one of"));
  EXPECT_THAT(error_of(gpu + "[[fault]]\nkind = \"xid\"\n"), HasSubstr("needs a code"));
  EXPECT_THAT(error_of("hostname = 5\n"), HasSubstr("text in quotes"));
  EXPECT_THAT(error_of(std::string(2 << 20, '#')), HasSubstr("1 MiB"));
  EXPECT_THAT(error_of(gpu + "pci_addresses = [\"0000:zz:00.0\"]\n"), HasSubstr("0000:1b:00.0"));
  EXPECT_THAT(error_of(gpu + "uuids = [\"GPU-1\"]\n" + gpu + "uuids = [\"GPU-1\"]\n"), HasSubstr("two GPUs"));
}

TEST(Scenario, MigInstancesAreSevenSlicesAtMost) {
  const std::string gpu = "[[gpu]]\nid = \"a100-sxm4-80gb\"\nmig = true\n";
  const std::string half = "[[gpu.instance]]\nprofile = \"3g.40gb\"\n";
  const Scenario scenario = parsed(gpu + half + half + "[[gpu.instance]]\nprofile = \"1g.10gb\"\n");
  ASSERT_EQ(scenario.gpus[0].instances.size(), 3U);
  EXPECT_EQ(scenario.gpus[0].instances[1].gpu_instance, 2);
  EXPECT_EQ(scenario.gpus[0].instances[2].gpu_instance, 7);
  // `nvidia-smi mig -lgip` of an A100: 42 of 3g, 14 of 1g (NVIDIA MIG User Guide, A100 profiles).
  EXPECT_EQ(scenario.gpus[0].instances[0].multiprocessors, 42);
  EXPECT_EQ(scenario.gpus[0].instances[2].multiprocessors, 14);
  const Scenario hopper =
      parsed("[[gpu]]\nid = \"h100-sxm5-80gb\"\nmig = true\n[[gpu.instance]]\nprofile = \"1g.10gb\"\n");
  EXPECT_EQ(hopper.gpus[0].instances[0].multiprocessors, 16);
  EXPECT_THAT(error_of(gpu + half + half + half), HasSubstr("7 slices"));
  EXPECT_THAT(error_of("[[gpu]]\nid = \"a100-sxm4-80gb\"\n" + half), HasSubstr("mig = true"));
}

TEST(Scenario, TheGuidesExampleIsAScenario) {
  const std::string guide = read_file(GPUWRIGHT_SOURCE_DIR "/docs/simulate.md", 1 << 20).value();
  const std::size_t begin = guide.find("```toml\n") + 8, end = guide.find("```", begin);
  const Scenario scenario = parsed(guide.substr(begin, end - begin));
  EXPECT_EQ(scenario.gpus.size(), 8U);
  EXPECT_EQ(scenario.processes.size(), 8U);
  EXPECT_EQ(scenario.faults.size(), 1U);
}

TEST(Host, TellsWhatProcWouldTell) {
  const auto host = Host::from_scenario("8xh100").value();
  const auto process = host->process(41203);
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->user, "mira");
  EXPECT_THAT(process->cgroup, HasSubstr("kubepods"));
  EXPECT_EQ(process->pid_here, 41203);
  EXPECT_FALSE(host->process(1).has_value());
  const auto hidden = Host::from_scenario("pid-namespace").value();
  EXPECT_EQ(hidden->process(220417)->pid_here, 31);
  EXPECT_FALSE(hidden->process(198822)->pid_here.has_value());
}

TEST(Host, TheClockRunsUntilItIsStopped) {
  const auto host = Host::from_toml("hostname = \"x\"\n", "x").value();
  const double before = host->time();
  usleep(2000);
  EXPECT_GT(host->time(), before);
  host->set_time(5);
  EXPECT_DOUBLE_EQ(host->time(), 5);
  EXPECT_DOUBLE_EQ(Host::from_toml("stopped_at = 7.5\n", "x").value()->time(), 7.5);
}

TEST(Host, ProcessesComeAndGo) {
  const auto host = Host::from_scenario("freeing").value();
  host->set_time(4.9);
  EXPECT_TRUE(host->process(902).has_value());
  host->set_time(5);
  EXPECT_FALSE(host->process(902).has_value());
}

TEST(Host, KernelFilesTellWhatNvmlDoesNot) {
  const auto mismatch = Host::from_scenario("mismatch").value();
  EXPECT_THAT(mismatch->file("/proc/driver/nvidia/version").value_or(""), HasSubstr("535.183.01"));
  EXPECT_FALSE(Host::from_scenario("not-loaded").value()->file("/proc/driver/nvidia/version").has_value());
  // What GB10's GPU and the rest of the machine hold is no longer available (Syllo/nvtop#511).
  const auto spark = Host::from_scenario("gb10").value();
  const auto memory = spark->file("/proc/meminfo").value_or("");
  EXPECT_THAT(memory, HasSubstr("MemTotal:       127600640 kB"));  // 124610 MiB
  EXPECT_THAT(memory, HasSubstr("MemAvailable:   52047872 kB"));   // less 8192, 65210 and 380 MiB
  const auto host = Host::from_scenario("8xh100").value();
  ASSERT_EQ(host->files_in("/sys/bus/pci/devices").size(), 8U);
  const std::string folder = "/sys/bus/pci/devices/" + host->files_in("/sys/bus/pci/devices")[0];
  EXPECT_EQ(host->file(folder + "/vendor"), "0x10de\n");
  EXPECT_EQ(host->file(folder + "/device"), "0x2330\n");
  EXPECT_EQ(host->file(folder + "/power/runtime_status"), "active\n");
  EXPECT_FALSE(host->file(folder).has_value());
  EXPECT_FALSE(host->file("/etc/passwd").has_value());
}

TEST(Host, AGpuThatSleepsSaysSoInItsFiles) {
  const auto host = Host::from_scenario("asleep").value();
  const auto folder = "/sys/bus/pci/devices/" + host->files_in("/sys/bus/pci/devices")[0];
  host->set_time(1);
  EXPECT_EQ(host->file(folder + "/power/runtime_status"), "suspended\n");
  host->set_time(30);
  EXPECT_EQ(host->file(folder + "/power/runtime_status"), "active\n");
  EXPECT_EQ(host->calls_for_gpu(0), 0);
}

}  // namespace
}  // namespace gpuwright::sim
