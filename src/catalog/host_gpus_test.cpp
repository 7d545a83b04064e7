#include "catalog/host_gpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/embedded.h"

namespace gpuwright::catalog {
namespace {

namespace fs = std::filesystem;

// A machine's /sys/bus/pci/devices under a directory of its own. Values are those that sysfs shows.
class HostGpusTest : public ::testing::Test {
 protected:
  HostGpusTest() : catalog_(Catalog::from_toml(embedded_data("gpus.toml").value(), "gpus.toml").value()) {
    root_ = fs::path(::testing::TempDir()) /
            ("gpuwright_host_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~HostGpusTest() override { fs::remove_all(root_); }

  void add(const std::string& address, const std::string& device_class, const std::string& vendor,
           const std::string& device, const std::string& subsystem_vendor = "0x1043",
           const std::string& subsystem = "0x889a") {
    const fs::path path = root_ / "sys/bus/pci/devices" / address;
    fs::create_directories(path);
    std::ofstream(path / "class") << device_class << '\n';
    std::ofstream(path / "vendor") << vendor << '\n';
    std::ofstream(path / "device") << device << '\n';
    std::ofstream(path / "subsystem_vendor") << subsystem_vendor << '\n';
    std::ofstream(path / "subsystem_device") << subsystem << '\n';
  }
  void attribute(const std::string& address, const std::string& name, const std::string& value) {
    std::ofstream(root_ / "sys/bus/pci/devices" / address / name) << value << '\n';
  }
  HostGpus find() const { return find_host_gpus(catalog_, root_.string()); }

  Catalog catalog_;
  fs::path root_;
};

TEST_F(HostGpusTest, NamesCardsByTheirIds) {
  add("0000:00:1f.3", "0x040300", "0x8086", "0x7ad0");  // sound
  add("0000:01:00.0", "0x030000", "0x10de", "0x2684");
  add("0000:01:00.1", "0x040300", "0x10de", "0x22ba");  // the card's own sound
  add("0000:41:00.0", "0x030200", "0x10de", "0x2330", "0x10de", "0x16c1");
  add("0000:81:00.0", "0x120000", "0x1002", "0x74a1", "0x1002", "0x74a1");
  const HostGpus host = find();
  EXPECT_EQ(host.pci_devices, 5);
  ASSERT_EQ(host.gpus.size(), 3U);
  EXPECT_EQ(host.gpus[0].pci_address, "0000:01:00.0");
  EXPECT_EQ(host.gpus[0].name, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(host.gpus[1].accelerator()->id, "h100-sxm5-80gb");
  EXPECT_EQ(host.gpus[2].accelerator()->id, "mi300x-192gb");
}

TEST_F(HostGpusTest, TellsBoardsApartBySubsystemOrMemory) {
  add("0000:01:00.0", "0x030200", "0x10de", "0x25b6", "0x10de", "0x14a9");
  add("0000:02:00.0", "0x030000", "0x1002", "0x744c");
  attribute("0000:02:00.0", "mem_info_vram_total", "25753026560");  // 24,560 MiB, as a 7900 XTX reports
  add("0000:03:00.0", "0x030000", "0x1002", "0x744c");
  const HostGpus host = find();
  ASSERT_EQ(host.gpus.size(), 3U);
  EXPECT_EQ(host.gpus[0].accelerator()->id, "a16-16gb");
  EXPECT_EQ(host.gpus[1].accelerator()->id, "rx-7900-xtx-24gb");
  EXPECT_EQ(host.gpus[2].accelerator(), nullptr);
  EXPECT_EQ(host.gpus[2].candidates.size(), 3U);
  EXPECT_NE(host.gpus[2].name.find(" or "), std::string::npos);
}

TEST_F(HostGpusTest, KnowsWhatDoesNotCompute) {
  add("0000:02:00.0", "0x030000", "0x1a03", "0x2000");
  add("0000:03:00.0", "0x030000", "0x10de", "0xffff");
  const HostGpus host = find();
  ASSERT_EQ(host.gpus.size(), 2U);
  EXPECT_TRUE(host.gpus[0].display_only);
  EXPECT_FALSE(host.gpus[1].display_only);
  EXPECT_EQ(host.gpus[1].name, "NVIDIA 10de:ffff");
  EXPECT_EQ(host.gpus[1].accelerator(), nullptr);
}

TEST_F(HostGpusTest, AMachineWithoutPciIsNoError) {
  const HostGpus host = find();
  EXPECT_TRUE(host.gpus.empty());
  EXPECT_EQ(host.pci_devices, 0);
  EXPECT_EQ(host.looked_at, root_.string() + "/sys/bus/pci/devices");
}

TEST_F(HostGpusTest, PassesOverDamagedEntries) {
  add("0000:01:00.0", "0x03zz00", "0x10de", "0x2684");
  add("0000:02:00.0", "0x030000", "garbage", "0x2684");
  add("0000:03:00.0", std::string(200'000, 'x'), "0x10de", "0x2684");
  fs::create_directories(root_ / "sys/bus/pci/devices/empty");
  const HostGpus host = find();
  ASSERT_EQ(host.gpus.size(), 1U);
  EXPECT_EQ(host.gpus[0].id.vendor, 0);
}

}  // namespace
}  // namespace gpuwright::catalog
