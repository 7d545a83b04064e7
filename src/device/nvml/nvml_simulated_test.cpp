// NVIDIA's GPUs as the simulated host has them: the same C functions that other programs load as libnvidia-ml.so.1.
// Each case is named after what was seen in the field; where it was seen stands in nvml_test.cpp and in the scenarios.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <set>

#include "device/nvml/nvml_source.h"
#include "sim/host.h"
#include "sim/nvml.h"

namespace gpuwright::device::nvidia {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kSecond = 1e9;

// A source over a host, read at moments of the host's own time.
class Simulated {
 public:
  static Simulated scenario(const std::string& name) { return Simulated(sim::Host::from_scenario(name).value()); }
  static Simulated toml(const std::string& text) {
    auto host = sim::Host::from_toml(text, "test.toml");
    EXPECT_TRUE(host) << (host ? "" : host.error().message());
    return Simulated(host.value());
  }

  SourceOptions& options() { return options_; }
  sim::Host* operator->() const { return host_.get(); }
  Snapshot read(double seconds = 0) {
    if (!source_) source_ = std::make_unique<NvmlSource>(options_);
    host_->set_time(seconds);
    Snapshot snapshot;
    snapshot.monotonic_ns = static_cast<std::int64_t>((1000 + seconds) * kSecond);
    snapshot.time.nanoseconds = now_ns_ + static_cast<std::int64_t>(seconds * kSecond);
    source_->read(snapshot, no_watch());
    return snapshot;
  }

 private:
  explicit Simulated(std::shared_ptr<sim::Host> host) : host_(std::move(host)) {
    options_.simulated = host_;
    now_ns_ = std::chrono::system_clock::now().time_since_epoch().count();
  }

  std::shared_ptr<sim::Host> host_;
  SourceOptions options_;
  std::unique_ptr<NvmlSource> source_;
  std::int64_t now_ns_;
};

const std::string kThree = "[[gpu]]\nid = \"l40s-48gb\"\ncount = 3\nload = 0.5\nrow_remapping = true\n";
std::string fault(const std::string& rest) {
  return "[[fault]]\n" + rest + "\n";
}

TEST(NvmlSimulated, EightH100TellEverything) {
  Simulated host = Simulated::scenario("8xh100");
  host.options().wants = {true, true, true, true, true, true};
  host.read(10);
  const Snapshot snapshot = host.read(11);
  ASSERT_THAT(snapshot.gpus, SizeIs(8));
  const Gpu& gpu = snapshot.gpus[7];
  // The driver's total of an H100 80GB HBM3, as llama.cpp logs print it: 81559 MiB.
  EXPECT_EQ(gpu.memory_total, Reading<Bytes>(Bytes{81559LL << 20}));
  EXPECT_EQ(*gpu.memory_total, *gpu.memory_used + *gpu.memory_reserved + *gpu.memory_free);
  EXPECT_NEAR(gpu.pcie_sent->value, 1850e6, 1e6);  // as the scenario says
  EXPECT_NEAR(gpu.pcie_received->value, 640e6, 1e6);
  EXPECT_GT(gpu.nvlink_sent->value, 800e6);
  EXPECT_TRUE(gpu.sm_activity.known());
  EXPECT_THAT(gpu.links, SizeIs(18));
  EXPECT_EQ(gpu.links[0].remote, Reading<std::string>("NVSwitch"));
  EXPECT_EQ(gpu.cuda_index, Reading<std::int64_t>(7));
  EXPECT_THAT(snapshot.processes, SizeIs(9));
  EXPECT_EQ(gpu.fan, Reading<Ratio>(Why::not_supported));
}

TEST(NvmlSimulated, CallsOfARefreshAreFew) {
  Simulated host = Simulated::scenario("8xh100");
  host.read(10);
  host.read(11);
  const std::int64_t before = sim::nvml_calls();
  const Snapshot snapshot = host.read(11.5);
  EXPECT_EQ(snapshot.vendor_calls, sim::nvml_calls() - before);
  // nvtop takes about 23 a GPU (measured on its sources of 2026-05).
  EXPECT_LE(snapshot.vendor_calls, 8 * 14);
}

TEST(NvmlSimulated, OneLostOneForbiddenAndOneToBeResetDoNotDisturbTheOthers) {
  Simulated host = Simulated::toml(
      "[[gpu]]\nid = \"l40s-48gb\"\ncount = 5\nload = 0.5\n" + fault("kind = \"lost\"\ngpus = [0]\nat = 5") +
      fault("kind = \"no permission\"\ngpus = [2]") + fault("kind = \"needs reset\"\ngpus = [3]"));
  host.read(0);
  const Snapshot snapshot = host.read(6);
  ASSERT_THAT(snapshot.gpus, SizeIs(5));
  EXPECT_EQ(snapshot.gpus[0].state, State::lost);
  EXPECT_EQ(snapshot.gpus[1].state, State::ok);
  EXPECT_EQ(snapshot.gpus[2].state, State::no_permission);
  EXPECT_EQ(snapshot.gpus[3].state, State::needs_reset);
  EXPECT_EQ(snapshot.gpus[4].state, State::ok);
  for (const std::size_t well : {1U, 4U}) EXPECT_TRUE(snapshot.gpus[well].memory_used.known());
  EXPECT_EQ(snapshot.gpus[0].memory_used, Reading<Bytes>(Why::lost));
}

TEST(NvmlSimulated, GpuThatAnswersUnknownErrorToEverythingHasFailed) {
  Simulated host = Simulated::toml(kThree + fault("kind = \"failed\"\ngpus = [1]\nat = 5\nuntil = 60"));
  EXPECT_EQ(host.read(0).gpus[1].state, State::ok);
  const Snapshot snapshot = host.read(6);
  EXPECT_EQ(snapshot.gpus[1].state, State::failed);
  EXPECT_THAT(snapshot.gpus[1].state_detail, HasSubstr("Unknown Error"));
  EXPECT_EQ(snapshot.gpus[2].state, State::ok);
  host.read(61);
  EXPECT_EQ(host.read(130).gpus[1].state, State::ok);
}

TEST(NvmlSimulated, LostGpuComesBack) {
  Simulated host = Simulated::toml(kThree + fault("kind = \"lost\"\ngpus = [1]\nat = 5\nuntil = 20"));
  const auto uuid = host.read(0).gpus[1].uuid;
  EXPECT_EQ(host.read(6).gpus[1].state, State::lost);
  EXPECT_EQ(host.read(6.1).gpus[1].uuid, uuid);
  host.read(21);
  const Gpu gpu = host.read(90).gpus[1];
  EXPECT_EQ(gpu.state, State::ok);
  EXPECT_TRUE(gpu.memory_used.known());
}

TEST(NvmlSimulated, DriverThatIsReloadedUnderARunningSessionIsFoundAgain) {
  Simulated host = Simulated::toml(kThree + fault("kind = \"not loaded\"\nat = 10\nuntil = 20"));
  EXPECT_THAT(host.read(0).gpus, SizeIs(3));
  const Snapshot gone = host.read(11);
  EXPECT_THAT(gone.gpus, IsEmpty());
  EXPECT_NE(gone.sources[0].outcome, SourceReport::Outcome::found);
  const Snapshot back = host.read(21);
  ASSERT_THAT(back.gpus, SizeIs(3));
  EXPECT_EQ(back.gpus[2].state, State::ok);
}

TEST(NvmlSimulated, MismatchNamesBothVersions) {
  const Snapshot snapshot = Simulated::scenario("mismatch").read();
  EXPECT_THAT(snapshot.gpus, IsEmpty());
  ASSERT_THAT(snapshot.sources, SizeIs(1));
  EXPECT_EQ(snapshot.sources[0].outcome, SourceReport::Outcome::failed);
  EXPECT_EQ(snapshot.sources[0].text, "the kernel module is 535.183.01, the library 550.90.07: versions differ");
}

TEST(NvmlSimulated, SleepingGpuIsNeverAskedAndIsReadWhenItWoke) {
  Simulated host = Simulated::scenario("asleep");
  for (int second = 0; second < 20; second += 5) {
    const Snapshot snapshot = host.read(second);
    ASSERT_THAT(snapshot.gpus, SizeIs(1));
    EXPECT_EQ(snapshot.gpus[0].state, State::asleep);
    EXPECT_EQ(snapshot.gpus[0].temperature, Reading<Celsius>(Why::asleep));
  }
  EXPECT_EQ(host->calls_for_gpu(0), 0);
  EXPECT_EQ(host.read(21).gpus[0].state, State::ok);
  EXPECT_GT(host->calls_for_gpu(0), 0);
}

TEST(NvmlSimulated, SleepingGpuDoesNotHideTheOneThatIsAwake) {
  Simulated host =
      Simulated::toml("[[gpu]]\nid = \"rtx-4090-24gb\"\ncount = 2\n" + fault("kind = \"asleep\"\ngpus = [0]"));
  host.read(0);
  const Snapshot snapshot = host.read(1);
  ASSERT_THAT(snapshot.gpus, SizeIs(2));
  EXPECT_EQ(snapshot.gpus[0].state, State::asleep);
  EXPECT_EQ(snapshot.gpus[1].state, State::ok);
  EXPECT_EQ(snapshot.gpus[1].vendor_index, 1);
  EXPECT_EQ(host->calls_for_gpu(0), 0);
}

// pid and memory swapped, pids of 0: gpuopenanalytics/pynvml#50.
TEST(NvmlSimulated, Early535LayoutIsReadRight) {
  const Snapshot snapshot = Simulated::scenario("early-535").read(5);
  std::set<std::pair<std::int64_t, std::int64_t>> told;
  for (const Process& process : snapshot.processes)
    told.emplace(process.pid, process.memory.value_or(Bytes{0}).count >> 20);
  EXPECT_EQ(told, (std::set<std::pair<std::int64_t, std::int64_t>>{{8101, 30002}, {8102, 30002}, {8200, 1240}}));
}

TEST(NvmlSimulated, DriverOf2019LacksHalfOfTheFunctionsAndIsReadAllTheSame) {
  const Snapshot snapshot = Simulated::scenario("old-driver").read(5);
  ASSERT_THAT(snapshot.gpus, SizeIs(2));
  const Gpu& gpu = snapshot.gpus[0];
  EXPECT_EQ(gpu.state, State::ok);
  EXPECT_TRUE(gpu.memory_used.known());
  EXPECT_EQ(gpu.memory_reserved, Reading<Bytes>(Why::not_supported));
  EXPECT_TRUE(gpu.temperature.known());
  EXPECT_TRUE(gpu.throttle_reasons.known());
  EXPECT_EQ(gpu.mig_mode, Reading<bool>(Why::not_supported));
  EXPECT_THAT(snapshot.processes, SizeIs(1));
}

TEST(NvmlSimulated, StrictLibraryGetsWholeStructVersions) {
  Simulated host = Simulated::toml("[driver]\nstrict_versions = true\n" + kThree);
  const Gpu gpu = host.read(1).gpus[0];
  EXPECT_TRUE(gpu.memory_reserved.known());
  EXPECT_TRUE(gpu.temperature.known());
}

TEST(NvmlSimulated, SparkHasTheMachinesMemoryAndNoPcie) {
  const Gpu gpu = Simulated::scenario("gb10").read(3).gpus[0];
  EXPECT_TRUE(gpu.unified_memory);
  // "NVIDIA GB10, VRAM: 124610 MiB" (public llama.cpp log), which is the machine's RAM.
  EXPECT_EQ(gpu.memory_total, Reading<Bytes>(Bytes{124610LL << 20}));
  EXPECT_EQ(gpu.memory_used, Reading<Bytes>(Bytes{(65210LL + 380) << 20}));
  EXPECT_EQ(*gpu.memory_total - *gpu.memory_free, *gpu.memory_used + *gpu.host_used);
  EXPECT_EQ(gpu.pcie_width, Reading<std::int64_t>(Why::unified_memory));
  EXPECT_TRUE(gpu.utilization.known());
}

TEST(NvmlSimulated, WslTellsNoMemoryAndNoLoadOfProcesses) {
  const Snapshot snapshot = Simulated::scenario("wsl2").read(3);
  ASSERT_THAT(snapshot.processes, SizeIs(1));
  EXPECT_EQ(snapshot.processes[0].memory, Reading<Bytes>(Why::not_supported));
  EXPECT_EQ(snapshot.processes[0].sm_utilization, Reading<Ratio>(Why::not_supported));
  EXPECT_TRUE(snapshot.gpus[0].memory_used.known());
}

TEST(NvmlSimulated, ImpossibleSamplesOfProcessesAreNeverShown) {
  Simulated host = Simulated::toml("[driver]\nimpossible_samples = true\n" + kThree +
                                   "[[process]]\npid = 7\ngpus = [0]\nmemory_mib = 100\nsm = 0.4\n");
  for (int second = 0; second < 4; ++second)
    for (const Process& process : host.read(second).processes) {
      EXPECT_EQ(process.pid, 7);
      EXPECT_LE(process.sm_utilization.value_or(Ratio{0}).value, 1);
    }
}

TEST(NvmlSimulated, BlankValuesAreNeverShown) {
  Simulated host = Simulated::toml("[driver]\nblank_values = true\n" + kThree);
  host.options().wants.traffic = true;
  host.read(0);
  const Gpu gpu = host.read(1).gpus[0];
  EXPECT_LE(gpu.utilization.value_or(Ratio{0}).value, 1);
  EXPECT_LT(gpu.power.value_or(Watts{0}).value, 5000);
  EXPECT_LT(gpu.temperature.value_or(Celsius{0}).value, 200);
  EXPECT_LT(gpu.sm_clock.value_or(Hertz{0}).value, 1e10);
  EXPECT_LT(gpu.energy.value_or(Joules{0}).value, 1e15);
  EXPECT_LT(gpu.ecc_corrected_aggregate.value_or(0), 1'000'000);
  EXPECT_LT(gpu.pcie_sent.value_or(BytesPerSecond{0}).value, 1e12);
}

TEST(NvmlSimulated, MigTellsItsInstances) {
  const Snapshot snapshot = Simulated::scenario("a100-mig").read(3);
  const Gpu& gpu = snapshot.gpus[0];
  EXPECT_EQ(gpu.mig_mode, Reading<bool>(true));
  EXPECT_EQ(gpu.utilization, Reading<Ratio>(Why::in_mig_mode));
  EXPECT_EQ(gpu.encoder_utilization, Reading<Ratio>(Why::in_mig_mode));
  ASSERT_THAT(gpu.mig_instances, SizeIs(3));
  EXPECT_THAT(gpu.mig_instances, Contains(Field(&MigInstance::profile, Reading<std::string>("2g.20gb"))));
  for (const MigInstance& instance : gpu.mig_instances) EXPECT_TRUE(instance.memory_total.known());
  EXPECT_FALSE(gpu.unified_memory);
  EXPECT_EQ(gpu.cuda_index, Reading<std::int64_t>(Why::in_mig_mode));
  for (const Process& process : snapshot.processes)
    EXPECT_EQ(process.gpu_instance.known(), process.gpu == 0) << process.pid;
}

TEST(NvmlSimulated, FallOffTheBusIsToldWithItsXid) {
  Simulated host = Simulated::toml(kThree + fault("kind = \"xid\"\ngpus = [1]\nat = 5\ncode = 79") +
                                   fault("kind = \"lost\"\ngpus = [1]\nat = 5"));
  EXPECT_EQ(host.read(0).gpus[1].last_xid, Reading<std::int64_t>(Why::no_data));
  const Snapshot snapshot = host.read(6);
  EXPECT_EQ(snapshot.gpus[1].last_xid, Reading<std::int64_t>(79));
  EXPECT_THAT(snapshot.gpus[1].xids, SizeIs(1));
  EXPECT_THAT(snapshot.gpus[0].xids, IsEmpty());
  EXPECT_THAT(host.read(40).gpus[1].xids, SizeIs(1));  // after the session was begun anew
}

TEST(NvmlSimulated, ErrorsOfMemoryAndRemappedRowsAreCounted) {
  Simulated host = Simulated::toml("[[gpu]]\nid = \"h100-sxm5-80gb\"\ncount = 2\n" +
                                   fault("kind = \"ecc\"\ngpus = [0]\nat = 2\ncorrected = 17\nuncorrected = 2") +
                                   fault("kind = \"remap\"\ngpus = [0]\nat = 2\nuncorrected = 1\npending = true"));
  EXPECT_EQ(host.read(0).gpus[0].ecc_uncorrected_volatile, Reading<std::int64_t>(0));
  const Snapshot snapshot = host.read(10);
  EXPECT_EQ(snapshot.gpus[0].ecc_corrected_volatile, Reading<std::int64_t>(17));
  EXPECT_EQ(snapshot.gpus[0].ecc_uncorrected_aggregate, Reading<std::int64_t>(2));
  EXPECT_EQ(snapshot.gpus[0].remapped_rows_uncorrected, Reading<std::int64_t>(1));
  EXPECT_EQ(snapshot.gpus[0].remapping_pending, Reading<bool>(true));
  EXPECT_EQ(snapshot.gpus[1].remapping_pending, Reading<bool>(false));
}

TEST(NvmlSimulated, ThrottledGpuSaysWhy) {
  Simulated host = Simulated::toml(kThree + fault("kind = \"throttle\"\ngpus = [2]\nreasons = [\"hardware thermal\"]"));
  const Snapshot snapshot = host.read(1);
  EXPECT_NE(snapshot.gpus[2].throttle_reasons.value_or({}).bits & throttle::kHardwareThermal, 0U);
  EXPECT_EQ(snapshot.gpus[1].throttle_reasons.value_or({}).bits & throttle::kHardwareThermal, 0U);
}

// Sixteen GPUs, with the graphics list that takes 4.5 ms and the fan that takes 0.14 ms each: one after the other that
// would be 74 ms.
TEST(NvmlSimulated, DearCallsOfSixteenGpusOverlap) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "threads are slow under ThreadSanitizer";
#endif
  std::chrono::nanoseconds best = std::chrono::hours(1);
  for (int attempt = 0; attempt < 10; ++attempt) {  // on a busy machine the quickest tells
    Simulated host = Simulated::scenario("16xh100-slow-pcie");
    host.options().wants.traffic = true;
    const auto begin = std::chrono::steady_clock::now();
    const Snapshot snapshot = host.read(5);
    best = std::min<std::chrono::nanoseconds>(best, std::chrono::steady_clock::now() - begin);
    EXPECT_THAT(snapshot.gpus, SizeIs(16));
  }
  EXPECT_LT(best, std::chrono::milliseconds(70));
}

// As users have it: a shared library that dlopen finds.
TEST(NvmlSimulated, LibraryIsOpenedAtRunTime) {
  ::setenv("GPUWRIGHT_SIMULATE", "2x3090", 1);
  // Stays, so that what it holds for its whole life is no leak to a sanitizer.
  ASSERT_NE(::dlopen(SIMULATED_NVML, RTLD_NOW | RTLD_NODELETE), nullptr);
  SourceOptions options;
  options.nvml_library = SIMULATED_NVML;
  options.wake = true;  // whatever sleeps on this machine is not simulated
  Snapshot snapshot;
  snapshot.monotonic_ns = 1;
  NvmlSource(options).read(snapshot, no_watch());
  ::unsetenv("GPUWRIGHT_SIMULATE");
  ASSERT_THAT(snapshot.gpus, SizeIs(2));
  EXPECT_EQ(snapshot.gpus[0].name, Reading<std::string>("NVIDIA GeForce RTX 3090"));
  EXPECT_EQ(snapshot.gpus[1].state, State::ok);
}

}  // namespace
}  // namespace gpuwright::device::nvidia
