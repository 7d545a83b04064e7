// All sources together on one tree, through the reader as commands use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/reader.h"
#include "device/testing/amdgpu_tree.h"

namespace gpuwright::device {
namespace {

class SourcesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::add_radeon(tree_, 1, "0000:03:00.0");
    testing::add_radeon(tree_, 2, "0000:83:00.0");
    testing::add_uevent(tree_, 0, "i915", "8086:A780", "0000:00:02.0");
    tree_.file("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 16777216 kB\n");
    for (const auto& [address, id] : {std::pair("0000:03:00.0", "0x744c"), std::pair("0000:83:00.0", "0x744c")})
      tree_.file(std::string("sys/bus/pci/devices/") + address + "/class", "0x030000\n")
          .file(std::string("sys/bus/pci/devices/") + address + "/vendor", "0x1002\n")
          .file(std::string("sys/bus/pci/devices/") + address + "/device", std::string(id) + "\n");
    tree_.file("sys/bus/pci/devices/0000:c1:00.0/class", "0x030200\n");
    tree_.file("sys/bus/pci/devices/0000:c1:00.0/vendor", "0x10de\n");
    tree_.file("sys/bus/pci/devices/0000:c1:00.0/device", "0x2330\n");
    tree_.file("proc/10/fdinfo/3",
               "drm-driver: amdgpu\ndrm-pdev: 0000:83:00.0\ndrm-client-id: 1\ndrm-memory-vram: 1024 KiB\n");
    tree_.file("proc/10/status", "Name:\tpython3\nUid:\t0\t0\t0\t0\nNSpid:\t10\nVmRSS:\t4 kB\n");
    tree_.file("proc/10/cmdline", std::string("python3\0train.py\0", 17)).file("proc/10/cgroup", "0::/\n");
    tree_.file("etc/passwd", "root:x:0:0:root:/root:/bin/bash\n");
  }
  Reader reader() const {
    ReaderOptions options;
    options.sources.root = tree_.root();
    return Reader(options);
  }

  testing::Tree tree_;
};

TEST_F(SourcesTest, EachDeviceHasOneRow) {
  auto reading = reader();
  const Snapshot snapshot = reading.read();
  ASSERT_EQ(snapshot.gpus.size(), 4U);
  EXPECT_EQ(snapshot.gpus[0].pci_address, std::string("0000:03:00.0"));
  EXPECT_EQ(snapshot.gpus[1].pci_address, std::string("0000:83:00.0"));
  EXPECT_EQ(snapshot.gpus[2].source, "i915");
  EXPECT_EQ(snapshot.gpus[3].source, "pci");
  EXPECT_EQ(snapshot.gpus[3].state, State::no_driver);
  EXPECT_THAT(snapshot.gpus[3].name.value_or(""), ::testing::StartsWith("NVIDIA H100 SXM5"));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(snapshot.gpus[static_cast<std::size_t>(i)].index, i);
  ASSERT_EQ(snapshot.processes.size(), 1U);
  EXPECT_EQ(snapshot.processes[0].gpu, 1);
  EXPECT_EQ(snapshot.processes[0].memory, Bytes{1 << 20});
  EXPECT_EQ(snapshot.processes[0].user, std::string("root"));
  EXPECT_EQ(snapshot.processes[0].command, std::string("python3 train.py"));
  EXPECT_EQ(snapshot.processes[0].container, std::string());
}

// Rates come with the second reading; a card that went away keeps its row and number.
TEST_F(SourcesTest, DriverUnbind) {
  auto reading = reader();
  reading.read();
  tree_.remove("sys/class/drm/card1").remove("sys/bus/pci/devices/0000:03:00.0");
  const Snapshot snapshot = reading.read();
  ASSERT_EQ(snapshot.gpus.size(), 4U);
  EXPECT_EQ(snapshot.gpus[0].pci_address, std::string("0000:03:00.0"));
  EXPECT_EQ(snapshot.gpus[0].state, State::lost);
  EXPECT_EQ(snapshot.gpus[1].state, State::ok);
  EXPECT_EQ(snapshot.gpus[1].memory_used, Bytes{9663676416});
}

}  // namespace
}  // namespace gpuwright::device
