#include <gtest/gtest.h>

#include "device/source.h"
#include "device/testing/tree.h"

namespace gpuwright::device {
namespace {

class PciSourceTest : public ::testing::Test {
 protected:
  // Documentation/ABI/testing/sysfs-bus-pci
  void add(const std::string& address, const std::string& device_class, const std::string& vendor,
           const std::string& device, const std::string& driver = {}) {
    const std::string folder = "sys/bus/pci/devices/" + address + "/";
    tree_.file(folder + "class", device_class + "\n").file(folder + "vendor", vendor + "\n");
    tree_.file(folder + "device", device + "\n").file(folder + "numa_node", "1\n");
    if (!driver.empty()) tree_.link(folder + "driver", "../../../../bus/pci/drivers/" + driver);
  }
  void read() {
    SourceOptions options;
    options.root = tree_.root();
    pci_source(options)->read(snapshot_, no_watch());
  }

  testing::Tree tree_;
  Snapshot snapshot_;
};

TEST_F(PciSourceTest, AGpuWithoutADriver) {
  add("0000:01:00.0", "0x030000", "0x10de", "0x2684");
  add("0000:01:00.1", "0x040300", "0x10de", "0x22ba");  // its sound
  add("0000:02:00.0", "0x030000", "0x1a03", "0x2000");  // the management chip's picture
  read();
  ASSERT_EQ(snapshot_.gpus.size(), 1U);
  const Gpu& gpu = snapshot_.gpus[0];
  EXPECT_EQ(gpu.state, State::no_driver);
  EXPECT_EQ(gpu.vendor, Vendor::nvidia);
  EXPECT_EQ(gpu.catalog_id, "rtx-4090-24gb");
  EXPECT_EQ(gpu.name, std::string("NVIDIA GeForce RTX 4090"));
  EXPECT_EQ(gpu.pci_id, std::string("10de:2684"));
  EXPECT_EQ(gpu.numa_node, std::int64_t{1});
  EXPECT_EQ(gpu.memory_total.why(), Why::no_driver);
  EXPECT_NE(gpu.state_detail.find("modprobe nvidia"), std::string::npos);
}

// nvtop#225, #318: "No GPU" is no answer.
TEST_F(PciSourceTest, DriversThatHoldAGpuAreNamed) {
  add("0000:01:00.0", "0x030000", "0x10de", "0x2684", "nouveau");
  add("0000:02:00.0", "0x030200", "0x10de", "0x2330", "vfio-pci");
  add("0000:03:00.0", "0x120000", "0x1da3", "0x1020", "habanalabs");
  add("0000:04:00.0", "0x030200", "0x10de", "0x2330", "nvidia");
  snapshot_.sources.push_back({"nvml", SourceReport::Outcome::failed, "kernel module 535.54, library 550.90", {}});
  read();
  ASSERT_EQ(snapshot_.gpus.size(), 4U);
  EXPECT_EQ(snapshot_.gpus[0].state, State::no_driver);
  EXPECT_NE(snapshot_.gpus[0].state_detail.find("nouveau"), std::string::npos);
  EXPECT_NE(snapshot_.gpus[1].state_detail.find("virtual machine"), std::string::npos);
  EXPECT_EQ(snapshot_.gpus[2].state, State::failed);
  EXPECT_NE(snapshot_.gpus[2].state_detail.find("habanalabs"), std::string::npos);
  EXPECT_NE(snapshot_.gpus[3].state_detail.find("library 550.90"), std::string::npos);
}

TEST_F(PciSourceTest, WhatOthersToldIsNotToldAgain) {
  add("0000:01:00.0", "0x030000", "0x10de", "0x2684", "nvidia");
  add("0001:c1:00.0", "0x030000", "0x10de", "0x2684", "nvidia");
  Gpu first, second;
  first.pci_address = std::string("0000:01:00.0");
  second.pci_address = std::string("00000001:C1:00.0");  // as NVML writes it
  snapshot_.gpus = {first, second};
  read();
  EXPECT_EQ(snapshot_.gpus.size(), 2U);
}

TEST_F(PciSourceTest, NeuralUnitsAndIdleFunctionsAreNoGpus) {
  add("0000:00:0b.0", "0x120000", "0x8086", "0x7d1d", "intel_vpu");
  add("0000:3a:00.1", "0x038000", "0x8086", "0x56c0");
  tree_.link("sys/bus/pci/devices/0000:3a:00.1/physfn", "../0000:3a:00.0");
  read();
  EXPECT_TRUE(snapshot_.gpus.empty());
  ASSERT_EQ(snapshot_.sources.size(), 1U);
  EXPECT_EQ(snapshot_.sources[0].outcome, SourceReport::Outcome::absent);
}

TEST_F(PciSourceTest, HostileTrees) {
  add("0000:01:00.0", "0x030000", "0xffffffff", "-1");
  add("nonsense", "0x030000", "0x10de", "0x2684");
  tree_.fifo("sys/bus/pci/devices/0000:05:00.0/class");
  tree_.link("sys/bus/pci/devices/0000:06:00.0", "0000:06:00.0");
  tree_.sparse("sys/bus/pci/devices/0000:07:00.0/class", 10'000'000'000);
  read();
  EXPECT_LE(snapshot_.gpus.size(), 1U);
}

}  // namespace
}  // namespace gpuwright::device
