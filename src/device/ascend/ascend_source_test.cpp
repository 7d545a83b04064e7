#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "device/source.h"

namespace gpuwright::device {
namespace {

class AscendSourceTest : public ::testing::Test {
 protected:
  ~AscendSourceTest() override { ::unsetenv("FAKE_DCMI"); }
  const Snapshot& read(const char* mode = "", const char* library = FAKE_DCMI) {
    ::setenv("FAKE_DCMI", mode, 1);
    SourceOptions options;
    options.dcmi_library = library;
    snapshot_ = {};
    ascend_source(options)->read(snapshot_, no_watch());
    return snapshot_;
  }
  Snapshot snapshot_;
};

TEST_F(AscendSourceTest, TellsWhatDcmiTells) {
  ASSERT_EQ(read().gpus.size(), 2U);
  const Gpu& gpu = snapshot_.gpus[0];
  EXPECT_EQ(gpu.state, State::ok);
  EXPECT_EQ(gpu.vendor, Vendor::huawei);
  EXPECT_EQ(gpu.name, std::string("Ascend 910B3"));
  EXPECT_EQ(gpu.catalog_id, "ascend-910b-64gb");
  EXPECT_EQ(gpu.pci_address, std::string("0000:c1:00.0"));
  EXPECT_EQ(gpu.pci_id, std::string("19e5:d802"));
  EXPECT_EQ(gpu.memory_total, Bytes{std::int64_t{65536} << 20});
  EXPECT_EQ(gpu.memory_used, Bytes{std::int64_t{3398} << 20});
  EXPECT_EQ(gpu.memory_temperature, Celsius{41});
  EXPECT_EQ(gpu.utilization, Ratio{0.87});
  EXPECT_EQ(gpu.memory_utilization, Ratio{0.33});
  EXPECT_EQ(gpu.sm_clock, Hertz{1650e6});
  EXPECT_EQ(gpu.sm_clock_max, Hertz{1800e6});
  EXPECT_EQ(gpu.temperature, Celsius{48});
  EXPECT_EQ(gpu.power, Watts{93.4});
  EXPECT_EQ(gpu.ecc_enabled, true);
  EXPECT_EQ(gpu.ecc_corrected_volatile, std::int64_t{2});
  EXPECT_EQ(gpu.ecc_uncorrected_aggregate, std::int64_t{5});
  EXPECT_EQ(gpu.retired_pages_uncorrected, std::int64_t{7});
  const Gpu& ddr = snapshot_.gpus[1];
  EXPECT_EQ(ddr.name, std::string("Ascend 310P3"));
  EXPECT_EQ(ddr.memory_total, Bytes{std::int64_t{21527} << 20});
  EXPECT_EQ(ddr.memory_used, (Bytes{std::int64_t{21527} << 20}).scaled(0.1));
  EXPECT_EQ(ddr.memory_utilization, Ratio{0.12});
  EXPECT_EQ(ddr.power.why(), Why::not_supported);
  ASSERT_EQ(snapshot_.processes.size(), 1U);
  EXPECT_EQ(snapshot_.processes[0].pid, 4711);
  EXPECT_EQ(snapshot_.processes[0].gpu, 0);
  EXPECT_EQ(snapshot_.processes[0].memory, Bytes{2147483648});
  ASSERT_EQ(snapshot_.drivers.size(), 1U);
  EXPECT_EQ(snapshot_.drivers[0].version, std::string("24.1.0"));
  EXPECT_EQ(snapshot_.drivers[0].library_version.why(), Why::not_supported);  // this library lacks the function
  EXPECT_GT(snapshot_.vendor_calls, 20);
}

TEST_F(AscendSourceTest, FirstDriversTellKilobytes) {
  EXPECT_EQ(read("old").gpus.at(0).memory_total, Bytes{std::int64_t{32} << 30});
  EXPECT_EQ(snapshot_.gpus[0].memory_used, Bytes{std::int64_t{1} << 30});
}

// gpustat#125: the row stays, the others are as they were.
TEST_F(AscendSourceTest, OneBadDeviceLeavesTheOthers) {
  ASSERT_EQ(read("lost").gpus.size(), 2U);
  EXPECT_EQ(snapshot_.gpus[0].state, State::ok);
  EXPECT_EQ(snapshot_.gpus[1].state, State::lost);
  EXPECT_EQ(snapshot_.gpus[1].memory_used.why(), Why::lost);
  EXPECT_EQ(read("refused").gpus.at(1).state, State::no_permission);
  EXPECT_EQ(read("alarm").gpus.at(1).state, State::failed);
  EXPECT_EQ(snapshot_.gpus[1].state_detail, "critical alarm: 80e01801 (HBM multi-bit ECC error)");
}

TEST_F(AscendSourceTest, WithoutTheLibraryOrItsDriver) {
  EXPECT_TRUE(read("", "/opt/libno-such-dcmi.so").gpus.empty());
  EXPECT_EQ(snapshot_.sources.at(0).outcome, SourceReport::Outcome::absent);
  EXPECT_NE(snapshot_.sources[0].text.find("libno-such-dcmi.so"), std::string::npos);
  EXPECT_TRUE(read("no-init").gpus.empty());
  EXPECT_EQ(snapshot_.sources.at(0).outcome, SourceReport::Outcome::failed);
  EXPECT_NE(snapshot_.sources[0].text.find("-8005"), std::string::npos);
}

TEST_F(AscendSourceTest, WithoutTheDriversDeviceNoLibraryIsLookedFor) {
  if (::access("/dev/davinci_manager", F_OK) == 0) GTEST_SKIP() << "this machine has an Ascend driver";
  EXPECT_TRUE(read("", "libno-such-dcmi.so").gpus.empty());
  EXPECT_EQ(snapshot_.sources.at(0).outcome, SourceReport::Outcome::absent);
  EXPECT_NE(snapshot_.sources[0].text.find("/dev/davinci_manager"), std::string::npos);
}

}  // namespace
}  // namespace gpuwright::device
