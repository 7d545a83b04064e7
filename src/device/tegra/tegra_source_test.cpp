#include <gtest/gtest.h>

#include "device/source.h"
#include "device/tegra/nvmap.h"
#include "device/testing/tree.h"

namespace gpuwright::device {
namespace {

class TegraSourceTest : public ::testing::Test {
 protected:
  const Snapshot& read() {
    if (!source_) {
      SourceOptions options;
      options.root = tree_.root();
      source_ = tegra_source(options);
    }
    snapshot_ = {};
    source_->read(snapshot_, no_watch());
    return snapshot_;
  }
  // Paths and values as jetson_stats reads them on a Jetson AGX Orin (L4T 36).
  void add_orin() {
    tree_.file("proc/device-tree/model", std::string("NVIDIA Jetson AGX Orin Developer Kit\0", 37));
    tree_.file("proc/device-tree/compatible",
               std::string("nvidia,p3737-0000+p3701-0005\0nvidia,p3701-0005\0nvidia,tegra234\0", 64));
    tree_.file("proc/device-tree/serial-number", std::string("1421222012345\0", 14));
    tree_.file("proc/meminfo", "MemTotal:       64334812 kB\nMemAvailable:   40000000 kB\n");
    const std::string gpu = "sys/class/devfreq/17000000.gpu/";
    tree_.file(gpu + "cur_freq", "918000000\n")
        .file(gpu + "max_freq", "1300500000\n")
        .file(gpu + "device/load", "734\n");
    tree_.file("sys/class/thermal/thermal_zone0/type", "cpu-thermal\n")
        .file("sys/class/thermal/thermal_zone0/temp", "50000\n");
    tree_.file("sys/class/thermal/thermal_zone1/type", "gpu-thermal\n")
        .file("sys/class/thermal/thermal_zone1/temp", "47593\n");
    const std::string rail = "sys/class/hwmon/hwmon3/";
    tree_.file(rail + "name", "ina3221\n").file(rail + "in1_label", "VDD_GPU_SOC\n");
    tree_.file(rail + "in1_input", "19144\n").file(rail + "curr1_input", "500\n");
  }

  testing::Tree tree_;
  std::unique_ptr<Source> source_;
  Snapshot snapshot_;
};

// nvtop#225 ("No GPU"), nvitop#168.
TEST_F(TegraSourceTest, Jetson) {
  add_orin();
  ASSERT_EQ(read().gpus.size(), 1U);
  const Gpu& gpu = snapshot_.gpus[0];
  EXPECT_EQ(gpu.source, "tegra");
  EXPECT_EQ(gpu.name, std::string("NVIDIA Jetson AGX Orin Developer Kit"));
  EXPECT_EQ(gpu.catalog_id, "jetson-agx-orin-64gb");
  EXPECT_EQ(gpu.compute_capability, std::string("8.7"));
  EXPECT_TRUE(gpu.unified_memory);
  EXPECT_EQ(gpu.utilization, Ratio{0.734});
  EXPECT_EQ(gpu.graphics_clock, Hertz{918e6});
  EXPECT_EQ(gpu.graphics_clock_max, Hertz{1300.5e6});
  EXPECT_EQ(gpu.temperature, Celsius{47.593});
  EXPECT_DOUBLE_EQ(gpu.power->value, 19144.0 * 500 * 1e-6);
  EXPECT_EQ(gpu.memory_total, Bytes{std::int64_t{64334812} * 1024});
  EXPECT_EQ(gpu.memory_free, Bytes{std::int64_t{40000000} * 1024});
  EXPECT_FALSE(gpu.memory_used.known());  // debugfs is root's
  EXPECT_FALSE(gpu.pci_address.known());
}

TEST_F(TegraSourceTest, ProcessesOfNvmap) {
  add_orin();
  // seq_printf("%-18s %18s %8s %11s\n") and "%10lluK" of nvmap_dev.c
  tree_.file("sys/kernel/debug/nvmap/iovmm/clients",
             "CLIENT                        PROCESS      PID        SIZE\n"
             "user                          python3     4711     812340K\n"
             "user                       gnome shell     1924      12345K\n"
             "total                                               824685K\n");
  const Snapshot& snapshot = read();
  ASSERT_EQ(snapshot.processes.size(), 2U);
  EXPECT_EQ(snapshot.processes[1].pid, 4711);
  EXPECT_EQ(snapshot.processes[1].memory, Bytes{812340 * 1024});
  EXPECT_EQ(snapshot.gpus[0].memory_used, Bytes{824685 * 1024});
  EXPECT_EQ(snapshot.gpus[0].host_used, Bytes{std::int64_t{64334812 - 40000000 - 824685} * 1024});
}

// jetson_stats PR#889: early in the boot nothing is there; later it is.
TEST_F(TegraSourceTest, JetsonProbedAgainAfterBoot) {
  EXPECT_TRUE(read().gpus.empty());
  EXPECT_EQ(snapshot_.sources[0].outcome, SourceReport::Outcome::absent);
  add_orin();
  tree_.remove("sys/class/devfreq");
  ASSERT_EQ(read().gpus.size(), 1U);
  EXPECT_FALSE(snapshot_.gpus[0].utilization.known());
  tree_.file("sys/class/devfreq/17000000.gpu/device/load", "10\n");
  EXPECT_EQ(read().gpus[0].utilization, Ratio{0.01});
}

TEST_F(TegraSourceTest, OlderModulesHaveTheirLoadElsewhere) {
  tree_.file("proc/device-tree/model", std::string("NVIDIA Jetson Nano Developer Kit\0", 33));
  tree_.file("proc/device-tree/compatible", std::string("nvidia,p3450-0000\0nvidia,tegra210\0", 34));
  tree_.file("sys/devices/gpu.0/load", "1000\n");
  EXPECT_EQ(read().gpus.at(0).utilization, Ratio{1});
}

TEST_F(TegraSourceTest, HostileTrees) {
  add_orin();
  tree_.file("sys/class/devfreq/17000000.gpu/device/load", "-3\n");
  tree_.remove("sys/class/devfreq/17000000.gpu/cur_freq").fifo("sys/class/devfreq/17000000.gpu/cur_freq");
  tree_.sparse("sys/kernel/debug/nvmap/iovmm/clients", 10'000'000'000);
  const Snapshot& snapshot = read();
  EXPECT_EQ(snapshot.gpus[0].utilization.why(), Why::implausible);
  EXPECT_FALSE(snapshot.gpus[0].graphics_clock.known());
  EXPECT_TRUE(snapshot.processes.empty());
  EXPECT_TRUE(parse_nvmap_clients("a K\nK\n b -5 3K\nx 5 -3K\n x 99999999999999999999 1K").empty());
}

}  // namespace
}  // namespace gpuwright::device
