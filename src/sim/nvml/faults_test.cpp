// Each fault of a scenario, as a client of the library meets it.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "sim/testing/installed_host.h"

namespace gpuwright::sim {
namespace {

using Clock = std::chrono::steady_clock;

const std::string kTwo = "[[gpu]]\nid = \"l40s-48gb\"\ncount = 2\nload = 0.5\n";
const std::string kFour = "[[gpu]]\nid = \"l40s-48gb\"\ncount = 4\nload = 0.5\n";

std::string fault(const std::string& rest) {
  return "[[fault]]\n" + rest + "\n";
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

TEST(Faults, ALostGpuAnswersLostAndTheOthersGoOn) {
  const auto host = InstalledHost::from(kTwo + fault("kind = \"lost\"\ngpus = [0]\nat = 5"));
  host->set_time(0);
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  const nvml::Device first = handle(0), second = handle(1);
  unsigned celsius = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetTemperature, first, nvml::kTemperatureGpu, &celsius), nvml::kSuccess);
  host->set_time(5);
  EXPECT_EQ(NVML(nvmlDeviceGetTemperature, first, nvml::kTemperatureGpu, &celsius), nvml::kGpuIsLost);
  EXPECT_EQ(NVML(nvmlDeviceGetTemperature, second, nvml::kTemperatureGpu, &celsius), nvml::kSuccess);
  nvml::Device device = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2, 0U, &device), nvml::kGpuIsLost);
  unsigned count = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2, &count), nvml::kSuccess);
  EXPECT_EQ(count, 2U);
}

// nvmlInit starts every GPU and fails if one is bad; nvmlInit_v2 does not.
TEST(Faults, TheFirstInitFailsWithABadGpu) {
  const auto host = InstalledHost::from(kTwo + fault("kind = \"needs reset\"\ngpus = [1]"));
  EXPECT_EQ(NVML(nvmlInit), nvml::kResetRequired);
  EXPECT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  nvml::Device device = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2, 1U, &device), nvml::kResetRequired);
}

// The second version counts GPUs that this user may not open, the first does not.
TEST(Faults, WithoutPermissionTheFirstVersionsCountLess) {
  const auto host = InstalledHost::from(kTwo + fault("kind = \"no permission\"\ngpus = [0]"));
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  unsigned all = 0, mine = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2, &all), nvml::kSuccess);
  EXPECT_EQ(NVML(nvmlDeviceGetCount, &mine), nvml::kSuccess);
  EXPECT_EQ(all, 2U);
  EXPECT_EQ(mine, 1U);
  nvml::Device device = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2, 0U, &device), nvml::kNoPermission);
  ASSERT_EQ(NVML(nvmlDeviceGetHandleByIndex, 0U, &device), nvml::kSuccess);
  unsigned index = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetIndex, device, &index), nvml::kSuccess);
  EXPECT_EQ(index, 1U);
}

TEST(Faults, AMismatchIsToldByInit) {
  const auto host = InstalledHost::built_in("mismatch");
  EXPECT_EQ(NVML(nvmlInit_v2), nvml::kLibRmVersionMismatch);
  EXPECT_EQ(NVML(nvmlInit), nvml::kLibRmVersionMismatch);
  std::array<char, nvml::kVersionSize> version{};
  EXPECT_EQ(NVML(nvmlSystemGetDriverVersion, version.data(), nvml::kVersionSize), nvml::kUninitialized);
  EXPECT_EQ(NVML(nvmlSystemGetNVMLVersion, version.data(), nvml::kVersionSize), nvml::kSuccess);
  EXPECT_STREQ(version.data(), "12.550.90.07");
}

TEST(Faults, NoDriverIsToldByInit) {
  const auto host = InstalledHost::built_in("not-loaded");
  EXPECT_EQ(NVML(nvmlInit_v2), nvml::kDriverNotLoaded);
}

TEST(Faults, AfterAReloadOldHandlesAreWorthNothing) {
  const auto host = InstalledHost::from(kTwo + fault("kind = \"not loaded\"\nat = 10\nuntil = 12"));
  host->set_time(0);
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  const nvml::Device old = handle(0);
  unsigned count = 0, index = 0;
  host->set_time(11);
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2, &count), nvml::kUnknown);
  EXPECT_EQ(NVML(nvmlInit_v2), nvml::kDriverNotLoaded);
  host->set_time(12);
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2, &count), nvml::kUninitialized);
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  EXPECT_EQ(NVML(nvmlDeviceGetIndex, old, &index), nvml::kInvalidArgument);
  EXPECT_EQ(NVML(nvmlDeviceGetIndex, handle(0), &index), nvml::kSuccess);
}

TEST(Faults, SlowCallsTakeTheirTime) {
  const auto host = InstalledHost::from(
      kTwo + fault("kind = \"slow\"\nfunction = \"nvmlDeviceGetMemoryInfo\"\nmicroseconds = 30000\ngpus = [1]"));
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  nvml::Memory memory{};
  auto begin = Clock::now();
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo, handle(1), &memory), nvml::kSuccess);
  EXPECT_GE(seconds_since(begin), 0.03);
  nvml::MemoryV2 second{nvml::version_of<nvml::MemoryV2>(2), 0, 0, 0, 0};
  begin = Clock::now();
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2, handle(1), &second), nvml::kSuccess);
  EXPECT_GE(seconds_since(begin), 0.03) << "the name without a version stands for all versions";
}

// As on real drivers: nvmlDeviceGetPcieThroughput measures for 20 ms.
TEST(Faults, PcieThroughputBlocksByItself) {
  const auto host = InstalledHost::from(kTwo);
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  unsigned kilobytes = 0;
  const auto begin = Clock::now();
  EXPECT_EQ(NVML(nvmlDeviceGetPcieThroughput, handle(0), nvml::kPcieSent, &kilobytes), nvml::kSuccess);
  EXPECT_GE(seconds_since(begin), 0.02);
}

TEST(Faults, AHangLastsAsLongAsItsFault) {
  const auto host = InstalledHost::from(
      kTwo + fault("kind = \"hang\"\ngpus = [0]\nuntil = 0.15\nfunction = \"nvmlDeviceGetPowerUsage\""));
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  unsigned power = 0;
  const auto begin = Clock::now();
  EXPECT_EQ(NVML(nvmlDeviceGetPowerUsage, handle(1), &power), nvml::kSuccess);
  EXPECT_LT(host->time(), 0.15);
  EXPECT_EQ(NVML(nvmlDeviceGetPowerUsage, handle(0), &power), nvml::kSuccess);
  EXPECT_GE(host->time(), 0.15);
  EXPECT_LT(seconds_since(begin), 5);
}

TEST(Faults, ThrottlingLowersTheClockAndSaysWhy) {
  const auto host = InstalledHost::from(
      kTwo + fault("kind = \"throttle\"\ngpus = [1]\nat = 10\nuntil = 30\nreasons = [\"hardware thermal\"]\n"
                   "clock_share = 0.5"));
  host->set_time(20);
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  unsigned fast = 0, slow = 0;
  ASSERT_EQ(NVML(nvmlDeviceGetClockInfo, handle(0), nvml::kClockSm, &fast), nvml::kSuccess);
  ASSERT_EQ(NVML(nvmlDeviceGetClockInfo, handle(1), nvml::kClockSm, &slow), nvml::kSuccess);
  EXPECT_NEAR(slow, fast * 0.5, 15);
  unsigned long long reasons = 0;
  ASSERT_EQ(NVML(nvmlDeviceGetCurrentClocksEventReasons, handle(1), &reasons), nvml::kSuccess);
  EXPECT_EQ(reasons, nvml::clock_reason::kHardwareThermal);
  nvml::FieldValue value{};
  value.field_id = nvml::field::kHardwareThermalNs;
  ASSERT_EQ(NVML(nvmlDeviceGetFieldValues, handle(1), 1, &value), nvml::kSuccess);
  EXPECT_EQ(value.value.as_unsigned_long_long, 10'000'000'000ULL);
}

TEST(Faults, ErrorsOfTheMemoryAddUp) {
  const auto host = InstalledHost::from("[[gpu]]\nid = \"a100-sxm4-80gb\"\n" +
                                        fault("kind = \"ecc\"\nat = 1\ncorrected = 5\nuncorrected = 1") +
                                        fault("kind = \"ecc\"\nat = 2\ncorrected = 2") +
                                        fault("kind = \"remap\"\nat = 2\nuncorrected = 1\npending = true"));
  host->set_time(3);
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  unsigned long long corrected = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetTotalEccErrors, handle(0), nvml::kErrorCorrected, nvml::kEccVolatile, &corrected),
            nvml::kSuccess);
  EXPECT_EQ(corrected, 7U);
  unsigned rows[4] = {};
  EXPECT_EQ(NVML(nvmlDeviceGetRemappedRows, handle(0), &rows[0], &rows[1], &rows[2], &rows[3]), nvml::kSuccess);
  EXPECT_EQ(rows[1], 1U);
  EXPECT_EQ(rows[2], 1U);
  nvml::FieldValue value{};
  value.field_id = nvml::field::kRecoveryAction;
  ASSERT_EQ(NVML(nvmlDeviceGetFieldValues, handle(0), 1, &value), nvml::kSuccess);
  EXPECT_EQ(value.value.as_unsigned, nvml::kRecoverGpuReset);
}

TEST(Faults, XidsAreHeardByWhoWaits) {
  const auto host = InstalledHost::from(kFour + fault("kind = \"xid\"\ngpus = [2]\nat = 5\ncode = 31") +
                                        fault("kind = \"xid\"\ngpus = [3]\nat = 6\ncode = 79"));
  host->set_time(1);
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  nvml::EventSet set = nullptr;
  ASSERT_EQ(NVML(nvmlEventSetCreate, &set), nvml::kSuccess);
  for (unsigned i = 0; i < 4; ++i)
    ASSERT_EQ(NVML(nvmlDeviceRegisterEvents, handle(i), nvml::event::kXid, set), nvml::kSuccess);
  nvml::EventData data{};
  EXPECT_EQ(NVML(nvmlEventSetWait_v2, set, &data, 0U), nvml::kTimeout);
  host->set_time(10);
  ASSERT_EQ(NVML(nvmlEventSetWait_v2, set, &data, 0U), nvml::kSuccess);
  EXPECT_EQ(data.event_type, nvml::event::kXid);
  EXPECT_EQ(data.event_data, 31U);
  unsigned index = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetIndex, data.device, &index), nvml::kSuccess);
  EXPECT_EQ(index, 2U);
  ASSERT_EQ(NVML(nvmlEventSetWait_v2, set, &data, 0U), nvml::kSuccess);
  EXPECT_EQ(data.event_data, 79U);
  EXPECT_EQ(NVML(nvmlEventSetWait_v2, set, &data, 1U), nvml::kTimeout);
  EXPECT_EQ(NVML(nvmlEventSetFree, set), nvml::kSuccess);
  EXPECT_EQ(NVML(nvmlEventSetFree, set), nvml::kInvalidArgument);
  EXPECT_EQ(NVML(nvmlEventSetWait_v2, set, &data, 0U), nvml::kInvalidArgument);
}

// A set hears nothing of what was before it was registered.
TEST(Faults, ThereIsNoHistoryOfEvents) {
  const auto host = InstalledHost::from(kTwo + fault("kind = \"xid\"\nat = 5\ncode = 31"));
  host->set_time(8);
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  nvml::EventSet set = nullptr;
  ASSERT_EQ(NVML(nvmlEventSetCreate, &set), nvml::kSuccess);
  ASSERT_EQ(NVML(nvmlDeviceRegisterEvents, handle(0), nvml::event::kXid, set), nvml::kSuccess);
  nvml::EventData data{};
  EXPECT_EQ(NVML(nvmlEventSetWait_v2, set, &data, 0U), nvml::kTimeout);
}

}  // namespace
}  // namespace gpuwright::sim
