// Trees of the shape of Linux' Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon and of the sysfs code of
// both drivers.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "device/intel/memory_query.h"
#include "device/source.h"
#include "device/testing/amdgpu_tree.h"

namespace gpuwright::device {
namespace {

using testing::add_uevent;
using testing::card_path;

class IntelSourceTest : public ::testing::Test {
 protected:
  const Snapshot& read(std::int64_t monotonic_ns = 1'000'000'000) {
    if (!source_) {
      SourceOptions options;
      options.root = tree_.root();
      source_ = intel_source(options);
    }
    snapshot_ = {};
    snapshot_.monotonic_ns = monotonic_ns;
    source_->read(snapshot_, no_watch());
    if (snapshot_.gpus.empty()) snapshot_.gpus.emplace_back();
    return snapshot_;
  }
  // An Arc B580 under xe.
  void add_battlemage() {
    const std::string card = card_path(0), hwmon = card + "hwmon/hwmon2/", gt = card + "tile0/gt0/";
    add_uevent(tree_, 0, "xe", "8086:E20B", "0000:03:00.0");
    tree_.file(card + "tile0/physical_vram_size_bytes", "0x00000002f8000000\n");
    tree_.file(gt + "gtidle/name", "gt0-rc\n").file(gt + "gtidle/idle_residency_ms", "100000\n");
    tree_.file(gt + "freq0/act_freq", "2850\n")
        .file(gt + "freq0/cur_freq", "2900\n")
        .file(gt + "freq0/rp0_freq", "2900\n");
    tree_.file(gt + "freq0/throttle/status", "1\n").file(gt + "freq0/throttle/reason_pl1", "1\n");
    tree_.file(gt + "freq0/throttle/reason_thermal", "0\n");
    tree_.file(card + "tile0/gt1/gtidle/name", "gt1-mc\n").file(card + "tile0/gt1/gtidle/idle_residency_ms", "5000\n");
    tree_.file(card + "tile0/gt1/freq0/act_freq", "1200\n");
    tree_.file(hwmon + "name", "xe\n").file(hwmon + "energy1_input", "4000000000\n");
    tree_.file(hwmon + "power1_max", "190000000\n").file(hwmon + "power1_rated_max", "0\n");
    tree_.file(hwmon + "temp2_input", "52000\n")
        .file(hwmon + "temp3_input", "60000\n")
        .file(hwmon + "fan1_input", "900\n");
    tree_.file(card + "current_link_speed", "16.0 GT/s PCIe\n").file(card + "current_link_width", "8\n");
  }

  testing::Tree tree_;
  std::unique_ptr<Source> source_;
  Snapshot snapshot_;
};

TEST_F(IntelSourceTest, AnArcCardUnderXe) {
  add_battlemage();
  const Gpu& first = read().gpus[0];
  EXPECT_EQ(first.source, "xe");
  EXPECT_EQ(first.catalog_id, "arc-b580-12gb");
  EXPECT_EQ(first.memory_total, Bytes{0x2f8000000});
  EXPECT_EQ(first.graphics_clock, Hertz{2850e6});
  EXPECT_EQ(first.graphics_clock_max, Hertz{2900e6});
  EXPECT_EQ(first.video_clock, Hertz{1200e6});
  EXPECT_EQ(first.temperature, Celsius{52});
  EXPECT_EQ(first.memory_temperature, Celsius{60});
  EXPECT_EQ(first.fan_rpm, std::int64_t{900});
  EXPECT_EQ(first.power_limit, Watts{190});
  EXPECT_EQ(first.power_limit_default.why(), Why::not_supported);  // 0: the limit is off
  EXPECT_EQ(first.throttle_reasons, ThrottleReasons{throttle::kSoftwarePowerCap});
  EXPECT_EQ(first.pcie_generation, std::int64_t{4});
  EXPECT_EQ(first.power.why(), Why::needs_two_samples);
  EXPECT_EQ(first.utilization.why(), Why::needs_two_samples);
  // One second later: 250 ms asleep, 120 J.
  tree_.file(card_path(0) + "tile0/gt0/gtidle/idle_residency_ms", "100250\n");
  tree_.file(card_path(0) + "tile0/gt1/gtidle/idle_residency_ms", "6000\n");
  tree_.file(card_path(0) + "hwmon/hwmon2/energy1_input", "4120000000\n");
  const Gpu& second = read(2'000'000'000).gpus[0];
  EXPECT_DOUBLE_EQ(second.utilization->value, 0.75);
  EXPECT_DOUBLE_EQ(second.decoder_utilization->value, 0);
  EXPECT_DOUBLE_EQ(second.power->value, 120);
  EXPECT_DOUBLE_EQ(second.energy->value, 4120);
}

// nvtop kept the counter in 32 bits; one that steps back is no power at all.
TEST_F(IntelSourceTest, TheEnergyCounterWraps) {
  add_battlemage();
  read(1'000'000'000);
  tree_.file(card_path(0) + "hwmon/hwmon2/energy1_input", "17\n");
  EXPECT_EQ(read(2'000'000'000).gpus[0].power.why(), Why::needs_two_samples);
  tree_.file(card_path(0) + "hwmon/hwmon2/energy1_input", "50000017\n");
  EXPECT_DOUBLE_EQ(read(3'000'000'000).gpus[0].power->value, 50);
}

// nvtop#197, #347, #363: the missing right has a name.
TEST_F(IntelSourceTest, IntelNeedsRights) {
  add_battlemage();
  const Snapshot& snapshot = read();
  EXPECT_EQ(snapshot.gpus[0].memory_used.why(), Why::needs_perfmon);
  EXPECT_EQ(snapshot.gpus[0].memory_free.why(), Why::needs_perfmon);
  ASSERT_FALSE(snapshot.sources.empty());
  EXPECT_NE(snapshot.sources[0].text.find("CAP_PERFMON"), std::string::npos);
  EXPECT_NE(snapshot.sources[0].hint.find("cap_perfmon"), std::string::npos);
  EXPECT_TRUE(has_perfmon("Name:\tx\nCapEff:\t0000004000000000\n"));  // bit 38
  EXPECT_TRUE(has_perfmon("CapEff:\t000001ffffffffff\n"));            // root
  EXPECT_FALSE(has_perfmon("CapEff:\t0000000000000000\n"));
  EXPECT_FALSE(has_perfmon("CapEff:\tzz\n"));
}

TEST_F(IntelSourceTest, ProcessesOfXe) {
  add_battlemage();
  const std::string head =
      "drm-driver: xe\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 3\ndrm-total-vram0: 2 GiB\n"
      "drm-resident-vram0: 512 MiB\ndrm-resident-system: 7 MiB\n";
  tree_.file("proc/10/fdinfo/3", head + "drm-cycles-ccs: 100\ndrm-total-cycles-ccs: 1000\ndrm-cycles-rcs: 0\n");
  read(1'000'000'000);
  tree_.file("proc/10/fdinfo/3", head + "drm-cycles-ccs: 400\ndrm-total-cycles-ccs: 2000\ndrm-cycles-rcs: 0\n");
  const auto& processes = read(2'000'000'000).processes;
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_EQ(processes[0].memory, Bytes{512 << 20});
  EXPECT_DOUBLE_EQ(processes[0].sm_utilization->value, 0.3);
  EXPECT_EQ(processes[0].kind, process_kind::kCompute);
}

TEST_F(IntelSourceTest, AnIntegratedGpuUnderI915SharesTheRam) {
  const std::string folder = "sys/class/drm/card1/";
  add_uevent(tree_, 1, "i915", "8086:A780", "0000:00:02.0");
  tree_.file("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 16777216 kB\n");
  tree_.file(folder + "gt/gt0/rps_act_freq_mhz", "0\n").file(folder + "gt/gt0/rps_RP0_freq_mhz", "1650\n");
  tree_.file(folder + "gt/gt0/rc6_residency_ms", "4294967000\n");
  tree_.file("proc/9/fdinfo/3",
             "drm-driver: i915\ndrm-pdev: 0000:00:02.0\ndrm-client-id: 1\n"
             "drm-resident-system0: 1048576 KiB\ndrm-engine-render: 5 ns\n");
  const Gpu& gpu = read(1'000'000'000).gpus[0];
  EXPECT_EQ(gpu.source, "i915");
  EXPECT_TRUE(gpu.unified_memory);
  EXPECT_EQ(gpu.memory_total, Bytes{std::int64_t{32} << 30});
  EXPECT_EQ(gpu.memory_free, Bytes{std::int64_t{16} << 30});
  EXPECT_EQ(gpu.memory_used, Bytes{1 << 30});
  EXPECT_EQ(gpu.host_used, Bytes{std::int64_t{15} << 30});
  EXPECT_EQ(gpu.graphics_clock, Hertz{0});
  EXPECT_EQ(gpu.pcie_generation.why(), Why::not_supported);
  tree_.file(folder + "gt/gt0/rc6_residency_ms", "204\n");  // 32 bits: 500 ms later
  EXPECT_DOUBLE_EQ(read(2'000'000'000).gpus[0].utilization->value, 0.5);
}

TEST_F(IntelSourceTest, WakesTheSleepingDgpu) {
  add_battlemage();
  tree_.file(card_path(0) + "power/runtime_status", "suspended\n");
  const Gpu& gpu = read().gpus[0];
  EXPECT_EQ(gpu.state, State::asleep);
  EXPECT_EQ(gpu.temperature.why(), Why::asleep);
  EXPECT_EQ(gpu.memory_used.why(), Why::asleep);
}

// The numbers of the requests as other programs print them (bindgen of the kernel's headers); the replies are built by
// the layouts of i915_drm.h and xe_drm.h.
TEST(IntelMemoryQuery, AsksI915) {
  std::vector<std::uint64_t> reply(2 + 2 * 11);
  const std::uint32_t count = 2;
  std::memcpy(reply.data(), &count, sizeof count);
  reply[2 + 0] = 0;           // class 0: system memory
  reply[2 + 1] = 1ULL << 35;  // probed
  reply[2 + 11 + 0] = 1;      // class 1: device memory, instance 0
  reply[2 + 11 + 1] = 16ULL << 30;
  reply[2 + 11 + 2] = 12ULL << 30;  // unallocated
  const auto answer = [&](unsigned long request, void* argument) {
    EXPECT_EQ(request, 3222299769UL);
    std::uint64_t item_at = 0;
    std::memcpy(&item_at, static_cast<char*>(argument) + 8, 8);
    auto* item = reinterpret_cast<char*>(item_at);
    const auto length = static_cast<std::int32_t>(reply.size() * 8);
    std::uint64_t data_at = 0;
    std::memcpy(&data_at, item + 16, 8);
    if (data_at != 0) std::memcpy(reinterpret_cast<void*>(data_at), reply.data(), static_cast<std::size_t>(length));
    std::memcpy(item + 8, &length, 4);
    return 0;
  };
  const auto memory = query_i915_memory(answer);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total, Bytes{std::int64_t{16} << 30});
  EXPECT_EQ(memory->used, Bytes{std::int64_t{4} << 30});
  std::uint32_t lie = 4000;
  std::memcpy(reply.data(), &lie, sizeof lie);
  EXPECT_FALSE(query_i915_memory(answer));
  EXPECT_FALSE(query_i915_memory([](unsigned long, void*) { return -1; }));
}

TEST(IntelMemoryQuery, AsksXe) {
  std::vector<std::uint64_t> reply(1 + 11);
  const std::uint32_t count = 1;
  std::memcpy(reply.data(), &count, sizeof count);
  reply[1] = 1;  // VRAM
  reply[2] = 12ULL << 30;
  reply[3] = 5ULL << 30;
  const auto answer = [&](unsigned long request, void* argument) {
    EXPECT_EQ(request, 3223872576UL);
    std::uint64_t data_at = 0;
    std::memcpy(&data_at, static_cast<char*>(argument) + 16, 8);
    const auto size = static_cast<std::uint32_t>(reply.size() * 8);
    if (data_at != 0) std::memcpy(reinterpret_cast<void*>(data_at), reply.data(), size);
    std::memcpy(static_cast<char*>(argument) + 12, &size, 4);
    return 0;
  };
  const auto memory = query_xe_memory(answer);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total, Bytes{std::int64_t{12} << 30});
  EXPECT_EQ(memory->used, Bytes{std::int64_t{5} << 30});
  reply[3] = ~0ULL;  // more used than there is
  EXPECT_FALSE(query_xe_memory(answer));
}

}  // namespace
}  // namespace gpuwright::device
