#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/amdgpu/attributes.h"
#include "device/amdgpu/kfd.h"
#include "device/source.h"
#include "device/testing/amdgpu_tree.h"

namespace gpuwright::device {
namespace {

using testing::add_radeon;
using testing::add_uevent;
using testing::card_path;

class AmdgpuSourceTest : public ::testing::Test {
 protected:
  const Snapshot& read(std::int64_t monotonic_ns = 1'000'000'000) {
    if (!source_) {
      options_.root = tree_.root();
      source_ = amdgpu_source(options_);
    }
    snapshot_ = {};
    snapshot_.monotonic_ns = monotonic_ns;
    source_->read(snapshot_, no_watch());
    return snapshot_;
  }
  const Gpu& only_gpu(std::int64_t monotonic_ns = 1'000'000'000) {
    read(monotonic_ns);
    EXPECT_EQ(snapshot_.gpus.size(), 1U);
    if (snapshot_.gpus.empty()) snapshot_.gpus.emplace_back();
    return snapshot_.gpus.front();
  }

  testing::Tree tree_;
  SourceOptions options_;
  std::unique_ptr<Source> source_;
  Snapshot snapshot_;
};

TEST_F(AmdgpuSourceTest, TellsWhatTheDriverTells) {
  add_radeon(tree_);
  const Gpu& gpu = only_gpu();
  EXPECT_EQ(gpu.state, State::ok);
  EXPECT_EQ(gpu.vendor, Vendor::amd);
  EXPECT_EQ(gpu.source, "amdgpu");
  EXPECT_EQ(gpu.vendor_index, 1);
  EXPECT_EQ(gpu.catalog_id, "rx-7900-xtx-24gb");  // 1002:744c is several boards; 24 GB tell which
  EXPECT_EQ(gpu.name, std::string("AMD Radeon RX 7900 XTX"));
  EXPECT_EQ(gpu.pci_address, std::string("0000:03:00.0"));
  EXPECT_EQ(gpu.pci_id, std::string("1002:744c"));
  EXPECT_EQ(gpu.uuid, std::string("GPU-5b9f2f8e1c3d4a71"));
  EXPECT_EQ(gpu.memory_total, Bytes{25753026560});
  EXPECT_EQ(gpu.memory_used, Bytes{9663676416});
  EXPECT_EQ(gpu.memory_free, Bytes{25753026560 - 9663676416});
  EXPECT_EQ(gpu.gtt_used, Bytes{33554432});
  EXPECT_EQ(gpu.utilization, Ratio{0.97});
  EXPECT_EQ(gpu.memory_utilization, Ratio{0.41});
  EXPECT_EQ(gpu.graphics_clock, Hertz{2482e6});
  EXPECT_EQ(gpu.graphics_clock_max, Hertz{2526e6});
  EXPECT_EQ(gpu.memory_clock_max, Hertz{1249e6});
  EXPECT_EQ(gpu.power, Watts{303});
  EXPECT_EQ(gpu.power_limit, Watts{339});
  EXPECT_EQ(gpu.temperature, Celsius{54});
  EXPECT_EQ(gpu.memory_temperature, Celsius{80});
  EXPECT_EQ(gpu.temperature_slowdown, Celsius{100});
  EXPECT_EQ(gpu.fan, Ratio{0.4});
  EXPECT_EQ(gpu.fan_rpm, std::int64_t{1480});
  EXPECT_EQ(gpu.pcie_generation, std::int64_t{4});
  EXPECT_EQ(gpu.pcie_width, std::int64_t{16});
  EXPECT_EQ(gpu.pcie_replays, std::int64_t{2});
  EXPECT_EQ(gpu.mig_mode.why(), Why::not_supported);
  EXPECT_EQ(gpu.ecc_enabled.why(), Why::not_supported);
  EXPECT_EQ(gpu.numa_node.why(), Why::not_supported);
  ASSERT_EQ(snapshot_.sources.size(), 1U);
  EXPECT_EQ(snapshot_.sources[0].outcome, SourceReport::Outcome::found);
}

TEST_F(AmdgpuSourceTest, WithoutCardsItSaysWhatItLookedFor) {
  add_uevent(tree_, 0, "nouveau", "10DE:2684", "0000:01:00.0");
  EXPECT_TRUE(read().gpus.empty());
  ASSERT_EQ(snapshot_.sources.size(), 1U);
  EXPECT_EQ(snapshot_.sources[0].outcome, SourceReport::Outcome::absent);
}

// btop#1831, #1838: the row says asleep, and nothing that would wake the device is read.
TEST_F(AmdgpuSourceTest, WakesTheSleepingDgpu) {
  add_radeon(tree_);
  tree_.file(card_path(1) + "power/runtime_status", "suspended\n");
  const Gpu& asleep = only_gpu();
  EXPECT_EQ(asleep.state, State::asleep);
  EXPECT_EQ(asleep.memory_used.why(), Why::asleep);
  EXPECT_FALSE(asleep.temperature.known());
  EXPECT_EQ(asleep.pci_address, std::string("0000:03:00.0"));
  tree_.file(card_path(1) + "power/runtime_status", "active\n");
  const Gpu& awake = only_gpu(2'000'000'000);
  EXPECT_EQ(awake.state, State::ok);
  EXPECT_EQ(awake.catalog_id, "rx-7900-xtx-24gb");
  EXPECT_EQ(awake.temperature, Celsius{54});
}

// device-metrics-exporter#315: a field that failed once is tried again. btop#911 (0 W): power1_average, then
// power1_input, then gpu_metrics.
TEST_F(AmdgpuSourceTest, AmdExporterDropsAMetricForEver) {
  add_radeon(tree_);
  const std::string hwmon = card_path(1) + "hwmon/hwmon4/";
  tree_.remove(hwmon + "power1_average").file(hwmon + "temp1_input", "garbage\n");
  EXPECT_EQ(only_gpu().power.why(), Why::not_supported);
  EXPECT_EQ(snapshot_.gpus[0].temperature, Celsius{71});  // the junction's, as the edge tells nonsense
  EXPECT_EQ(snapshot_.gpus[0].utilization, Ratio{0.97});
  tree_.file(hwmon + "power1_input", "120000000\n").file(hwmon + "temp1_input", "55000\n");
  EXPECT_EQ(only_gpu().power, Watts{120});
  EXPECT_EQ(snapshot_.gpus[0].temperature, Celsius{55});
  tree_.remove(hwmon + "power1_input");
  std::string metrics(120, '\xff');  // 1.3, where the power lies at byte 22
  metrics.replace(0, 4, std::string("\x78\x00\x01\x03", 4));
  metrics.replace(22, 2, std::string("\x64\x00", 2));
  tree_.file(card_path(1) + "gpu_metrics", metrics);
  EXPECT_EQ(only_gpu().power, Watts{100});
}

// device-metrics-exporter#160: activity 0 at 100 %.
TEST_F(AmdgpuSourceTest, ActivityZeroWhileTheFirmwareSaysBusy) {
  add_radeon(tree_);
  tree_.file(card_path(1) + "gpu_busy_percent", "0\n");
  std::string metrics(120, '\xff');
  metrics.replace(0, 4, std::string("\x78\x00\x01\x03", 4));
  metrics.replace(16, 2, std::string("\x64\x00", 2));
  tree_.file(card_path(1) + "gpu_metrics", metrics);
  EXPECT_EQ(only_gpu().utilization, Ratio{1.0});
}

// ollama#12062, gpustack#4848 (512 MiB "VRAM"), legacy-rocm-build#6004 (VRAM + GTT > RAM).
TEST_F(AmdgpuSourceTest, AmdApu) {
  const std::string card = card_path(0);
  add_uevent(tree_, 0, "amdgpu", "1002:1586", "0000:c4:00.0");  // Strix Halo
  constexpr std::int64_t kGib = std::int64_t{1} << 30;
  tree_.file("proc/meminfo", "MemTotal:       65536000 kB\nMemFree: 1 kB\nMemAvailable:   41943040 kB\n");
  tree_.file(card + "mem_info_vram_total", std::to_string(kGib / 2) + "\n")
      .file(card + "mem_info_vram_used", "104857600\n");
  tree_.file(card + "mem_info_gtt_total", std::to_string(120 * kGib) + "\n");  // more than there is
  tree_.file(card + "mem_info_gtt_used", std::to_string(8 * kGib) + "\n");
  tree_.file(card + "gpu_busy_percent", "12\n");
  const Gpu& gpu = only_gpu();
  const Bytes ram{std::int64_t{65536000} * 1024};
  EXPECT_TRUE(gpu.unified_memory);
  EXPECT_EQ(gpu.vram_total, Bytes{kGib / 2});
  EXPECT_EQ(gpu.vram_used, Bytes{104857600});
  EXPECT_EQ(gpu.gtt_total, ram);
  EXPECT_EQ(gpu.memory_total, ram + Bytes{kGib / 2});
  EXPECT_EQ(gpu.memory_used, Bytes{104857600 + 8 * kGib});
  EXPECT_EQ(gpu.memory_free, Bytes{kGib / 2 - 104857600 + 40 * kGib});  // of the host no more than is available
  EXPECT_EQ(gpu.host_used, ram - Bytes{48 * kGib});
}

TEST_F(AmdgpuSourceTest, ErrorCountersOfRas) {
  add_radeon(tree_);
  const std::string ras = card_path(1) + "ras/";
  tree_.file(ras + "features", "feature mask: 0x3fff\n");
  tree_.file(ras + "umc_err_count", "ue: 1\nce: 12\n").file(ras + "gfx_err_count", "ue: 0\nce: 3\nde: 0\n");
  tree_.file(ras + "gpu_vram_bad_pages",
             "0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : P\n0x00000003 : 0x00001000 : R\n");
  const Gpu& gpu = only_gpu();
  EXPECT_EQ(gpu.ecc_enabled, true);
  EXPECT_EQ(gpu.ecc_uncorrected_volatile, std::int64_t{1});
  EXPECT_EQ(gpu.ecc_corrected_volatile, std::int64_t{15});
  EXPECT_EQ(gpu.retired_pages_uncorrected, std::int64_t{2});
  EXPECT_EQ(gpu.retirement_pending, true);
  options_.wants.health = false;
  source_.reset();
  EXPECT_EQ(only_gpu().ecc_corrected_volatile.why(), Why::not_read);
}

TEST_F(AmdgpuSourceTest, ProcessesByFdinfoAndByKfd) {
  add_radeon(tree_);
  tree_.file("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
  tree_.file("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "51146\n");
  tree_.file("sys/class/kfd/kfd/topology/nodes/1/properties",
             "cpu_cores_count 0\nsimd_count 192\nlocation_id 768\ndomain 0\ngfx_target_version 110000\n");
  tree_.file("sys/class/kfd/kfd/proc/77/vram_51146", "4294967296\n");
  tree_.file("sys/class/kfd/kfd/proc/10/vram_51146", "1073741824\n");
  tree_.file("proc/10/fdinfo/5",
             "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t1\ndrm-memory-vram:\t512 KiB\n"
             "drm-engine-gfx:\t1000000000 ns\n");
  read(1'000'000'000);
  tree_.file("proc/10/fdinfo/5",
             "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t1\ndrm-memory-vram:\t512 KiB\n"
             "drm-engine-gfx:\t1500000000 ns\ndrm-engine-compute:\t0 ns\n");
  const auto& processes = read(2'000'000'000).processes;
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(processes[0].pid, 10);
  EXPECT_EQ(processes[0].gpu, 0);
  EXPECT_EQ(processes[0].memory, Bytes{1 << 30});
  EXPECT_EQ(processes[0].sm_utilization, Ratio{0.5});
  EXPECT_EQ(processes[0].kind, process_kind::kGraphics | process_kind::kCompute);
  EXPECT_EQ(processes[1].pid, 77);  // another user's: only KFD tells of it
  EXPECT_EQ(processes[1].memory, Bytes{std::int64_t{4} << 30});
  EXPECT_EQ(processes[1].sm_utilization.why(), Why::not_visible);
  EXPECT_EQ(snapshot_.gpus[0].compute_capability, std::string("gfx1100"));
}

// nvtop#448: no samples are 0 %, but ROCm's own queues are not counted, which is no 0.
TEST_F(AmdgpuSourceTest, IdleClientsAndQueuesThatNobodyCounts) {
  add_radeon(tree_);
  tree_.file("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "51146\n");
  tree_.file("sys/class/kfd/kfd/topology/nodes/1/properties", "location_id 768\ndomain 0\n");
  tree_.file("sys/class/kfd/kfd/proc/11/vram_51146", "1073741824\n");
  for (const char* pid : {"10", "11"})
    tree_.file(std::string("proc/") + pid + "/fdinfo/5",
               std::string("drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t") + pid +
                   "\ndrm-memory-vram:\t512 KiB\n");
  ASSERT_EQ(read(1'000'000'000).processes.size(), 2U);
  EXPECT_EQ(snapshot_.processes[0].sm_utilization, Ratio{0});
  EXPECT_EQ(snapshot_.processes[1].sm_utilization.why(), Why::not_supported);
  tree_.file("proc/10/fdinfo/5",
             "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t10\ndrm-engine-gfx:\t250000000 ns\n");
  EXPECT_EQ(read(2'000'000'000).processes.at(0).sm_utilization, Ratio{0.25});  // its first use
}

TEST_F(AmdgpuSourceTest, XgmiNeighboursOfTheTopology) {
  add_radeon(tree_, 1, "0000:03:00.0");
  add_radeon(tree_, 2, "0000:83:00.0");
  const std::string nodes = "sys/class/kfd/kfd/topology/nodes/";
  tree_.file(nodes + "1/gpu_id", "11\n").file(nodes + "1/properties", "location_id 768\ndomain 0\n");
  tree_.file(nodes + "2/gpu_id", "12\n").file(nodes + "2/properties", "location_id 33536\ndomain 0\n");
  tree_.file(nodes + "1/io_links/0/properties", "type 2\nnode_from 1\nnode_to 0\n");
  tree_.file(nodes + "1/io_links/1/properties", "type 11\nnode_from 1\nnode_to 2\nweight 15\n");
  options_.wants.links = true;
  read();
  ASSERT_EQ(snapshot_.gpus.size(), 2U);
  ASSERT_EQ(snapshot_.gpus[0].links.size(), 1U);
  EXPECT_EQ(snapshot_.gpus[0].links[0].remote, std::string("0000:83:00.0"));
}

TEST_F(AmdgpuSourceTest, OneBadCardLeavesTheOthers) {
  add_radeon(tree_, 1, "0000:03:00.0");
  add_radeon(tree_, 2, "0000:83:00.0");
  const std::string bad = card_path(1);
  for (const char* name : {"mem_info_vram_used", "gpu_busy_percent", "gpu_metrics", "pp_dpm_sclk"})
    tree_.remove(bad + name).fifo(bad + name);
  tree_.sparse(bad + "mem_info_gtt_used", 10'000'000'000).file(bad + "mem_info_vram_total", "-5\n");
  read();
  ASSERT_EQ(snapshot_.gpus.size(), 2U);
  EXPECT_FALSE(snapshot_.gpus[0].memory_used.known());
  EXPECT_FALSE(snapshot_.gpus[0].memory_free.known());
  EXPECT_EQ(snapshot_.gpus[0].gtt_used.why(), Why::implausible);
  EXPECT_EQ(snapshot_.gpus[1].memory_used, Bytes{9663676416});
}

TEST(AmdgpuAttributes, InstructionSets) {
  // LLVM's "User Guide for AMDGPU Backend" names the processors; the numbers are KFD's gfx_target_version.
  EXPECT_EQ(instruction_set_of(90402), "gfx942");
  EXPECT_EQ(instruction_set_of(90010), "gfx90a");
  EXPECT_EQ(instruction_set_of(110501), "gfx1151");
  EXPECT_EQ(instruction_set_of(100300), "gfx1030");
  EXPECT_EQ(instruction_set_of(0), "");
}

TEST(AmdgpuAttributes, DpmLevels) {
  const DpmLevels levels = parse_dpm_levels("S: 19Mhz *\n0: 500Mhz\n1: 2575Mhz\n");
  EXPECT_EQ(levels.current, Hertz{19e6});
  EXPECT_EQ(levels.highest, Hertz{2575e6});
  EXPECT_FALSE(parse_dpm_levels("0: -5Mhz *\n1: Mhz\n2: 99999999999999999999Mhz\nx").highest);
}

TEST(AmdgpuAttributes, RasTexts) {
  EXPECT_FALSE(parse_ras_counts("ue: -1\nce: 0\n"));
  EXPECT_FALSE(parse_ras_counts("ue: 1\n"));
  EXPECT_EQ(parse_ras_features("feature mask: 0x2"), false);
  EXPECT_FALSE(parse_ras_features("feature mask: 0xzz"));
  EXPECT_EQ(parse_bad_pages("0x1 : 0x1000 : F\n\n0x\n: R\n").failed, 1);
}

}  // namespace
}  // namespace gpuwright::device
