// Drivers differ: old ones, early ones, those of WSL2, those of unified memory, those that say impossible things.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "sim/testing/installed_host.h"

namespace gpuwright::sim {
namespace {

std::string driver(const std::string& rest) {
  return "[driver]\n" + rest +
         "\n[[gpu]]\nid = \"h100-sxm5-80gb\"\nload = 0.5\n[[process]]\npid = 77\nmemory_mib = 500\nsm = 0.4\n";
}

// wookayin/gpustat#161: the longer struct under the name of the third version.
TEST(Habits, Early535WritesLongEntries) {
  const auto host = InstalledHost::built_in("early-535");
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  EXPECT_EQ(nvml_symbol("nvmlDeviceGetRunningProcessDetailList"), nullptr);
  EXPECT_NE(nvml_symbol("nvmlDeviceGetConfComputeMemSizeInfo"), nullptr);
  std::array<nvml::ProcessDetail, 4> entries{};
  unsigned count = 4;
  auto* buffer = reinterpret_cast<nvml::ProcessInfoV2*>(entries.data());
  ASSERT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3, handle(0), &count, buffer), nvml::kSuccess);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(entries[1].pid, 8200U);
  EXPECT_EQ(entries[1].used_gpu_memory >> 20, 1240U);
  // Read as 24-byte entries the second one begins inside the first: pid and memory are garbage.
  nvml::ProcessInfoV2 wrong{};
  std::memcpy(&wrong, reinterpret_cast<char*>(entries.data()) + sizeof wrong, sizeof wrong);
  EXPECT_NE(wrong.pid, 8200U);
}

TEST(Habits, AnOldDriverLacksWhatCameLater) {
  const auto host = InstalledHost::built_in("old-driver");
  EXPECT_EQ(nvml_symbol("nvmlDeviceGetMemoryInfo_v2"), nullptr);
  EXPECT_EQ(nvml_symbol("nvmlDeviceGetComputeRunningProcesses_v2"), nullptr);
  EXPECT_EQ(nvml_symbol("nvmlDeviceGetMigMode"), nullptr);
  EXPECT_EQ(nvml_symbol("nvmlGpmSampleAlloc"), nullptr);
  EXPECT_NE(nvml_symbol("nvmlDeviceGetComputeRunningProcesses"), nullptr);
  EXPECT_NE(nvml_symbol("nvmlDeviceGetPciInfo_v3"), nullptr);
  EXPECT_NE(nvml_symbol("nvmlDeviceGetFieldValues"), nullptr);
}

TEST(Habits, TheOldestHasFirstVersionsOnly) {
  const auto host = InstalledHost::from(driver("generation = 304"));
  EXPECT_EQ(nvml_symbol("nvmlInit_v2"), nullptr);
  EXPECT_EQ(NVML(nvmlInit), nvml::kSuccess);
  unsigned count = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetCount, &count), nvml::kSuccess);
  EXPECT_EQ(count, 1U);
  nvml::Device device = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex, 0U, &device), nvml::kSuccess);
}

TEST(Habits, MissingSymbolsMayEndInAStar) {
  const auto host = InstalledHost::from(driver("missing_symbols = [\"nvmlGpm*\", \"nvmlDeviceGetSerial\"]"));
  EXPECT_EQ(nvml_symbol("nvmlGpmSampleGet"), nullptr);
  EXPECT_EQ(nvml_symbol("nvmlDeviceGetSerial"), nullptr);
  EXPECT_NE(nvml_symbol("nvmlDeviceGetName"), nullptr);
}

// Under strict_versions a bare number is refused, as nvtop's version = 2 is by some libraries.
TEST(Habits, StrictVersionsWantTheWholeWord) {
  for (const bool strict : {false, true}) {
    const auto host = InstalledHost::from(driver(strict ? "strict_versions = true" : "strict_versions = false"));
    ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
    nvml::MemoryV2 memory{2, 0, 0, 0, 0};
    EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2, handle(0), &memory),
              strict ? nvml::kArgumentVersionMismatch : nvml::kSuccess);
    memory.version = nvml::version_of<nvml::MemoryV2>(2);
    EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2, handle(0), &memory), nvml::kSuccess);
    memory.version = 0x01000001;
    EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2, handle(0), &memory), nvml::kArgumentVersionMismatch);
  }
}

// Syllo/nvtop#432: 0xFFFFFFFFFFFFFFFF shown as 17179869184 GiB.
TEST(Habits, Wsl2TellsNothingOfProcesses) {
  const auto host = InstalledHost::built_in("wsl2");
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  unsigned count = 2;
  std::array<nvml::ProcessInfoV2, 2> entries{};
  ASSERT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3, handle(0), &count, entries.data()), nvml::kSuccess);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(entries[0].used_gpu_memory, nvml::kMemoryNotAvailable);
  EXPECT_EQ(NVML(nvmlDeviceGetProcessUtilization, handle(0), nullptr, &count, 0ULL), nvml::kNotSupported);
}

TEST(Habits, Gb10TellsNoMemoryButThatOfProcesses) {
  const auto host = InstalledHost::built_in("gb10");
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  nvml::Memory memory{};
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo, handle(0), &memory), nvml::kNotSupported);
  nvml::MemoryV2 second{nvml::version_of<nvml::MemoryV2>(2), 0, 0, 0, 0};
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2, handle(0), &second), nvml::kNotSupported);
  unsigned count = 4;
  std::array<nvml::ProcessInfoV2, 4> entries{};
  ASSERT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3, handle(0), &count, entries.data()), nvml::kSuccess);
  EXPECT_EQ(entries[0].used_gpu_memory >> 20, 65210U);
  unsigned generation = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetCurrPcieLinkGeneration, handle(0), &generation), nvml::kSuccess);
  EXPECT_EQ(generation, 1U);
}

// Jetson's library may say success and zeros.
TEST(Habits, MemoryInfoMayBeZero) {
  const auto host = InstalledHost::from("[[gpu]]\nid = \"l4-24gb\"\nmemory_info = \"zero\"\n");
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  nvml::Memory memory{1, 1, 1};
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo, handle(0), &memory), nvml::kSuccess);
  EXPECT_EQ(memory.total + memory.free + memory.used, 0U);
}

// NVIDIA/go-nvml#152: nvmlInit does not come back.
TEST(Habits, InitMayHang) {
  const auto host =
      InstalledHost::from(driver("") + "[[fault]]\nkind = \"hang\"\nfunction = \"nvmlInit\"\nuntil = 0.1\n");
  EXPECT_EQ(NVML(nvmlInitWithFlags, 0U), nvml::kSuccess);
  EXPECT_GE(host->time(), 0.1);
}

// NOT_FOUND means that there is no sample since the last: no error, and not "not supported" (Syllo/nvtop#448).
TEST(Habits, ProcessSamplesAreNewOrNotFound) {
  const auto host = InstalledHost::from(driver(""));
  host->set_time(10);
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  unsigned count = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetProcessUtilization, handle(0), nullptr, &count, 0ULL), nvml::kInsufficientSize);
  std::vector<nvml::ProcessUtilizationSample> samples(count);
  ASSERT_EQ(NVML(nvmlDeviceGetProcessUtilization, handle(0), samples.data(), &count, 0ULL), nvml::kSuccess);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(samples[0].pid, 77U);
  EXPECT_EQ(samples[0].sm, 40U);
  const unsigned long long seen = samples[0].timestamp_us;
  count = 100;
  EXPECT_EQ(NVML(nvmlDeviceGetProcessUtilization, handle(0), samples.data(), &count, seen), nvml::kNotFound);
  host->set_time(11);
  count = 100;
  EXPECT_EQ(NVML(nvmlDeviceGetProcessUtilization, handle(0), samples.data(), &count, seen), nvml::kSuccess);
}

// Syllo/nvtop#110: 37100 %, and pids of processes that are gone.
TEST(Habits, ImpossibleSamplesComeWhereTheScenarioWantsThem) {
  const auto host = InstalledHost::from(driver("impossible_samples = true"));
  host->set_time(10);
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  std::array<nvml::ProcessUtilizationSample, 16> samples{};
  unsigned count = 16;
  ASSERT_EQ(NVML(nvmlDeviceGetProcessUtilization, handle(0), samples.data(), &count, 1ULL), nvml::kSuccess);
  const auto any = [&](auto holds) { return std::any_of(samples.begin(), samples.begin() + count, holds); };
  EXPECT_TRUE(any([](const auto& sample) { return sample.sm == 37'100; }));
  EXPECT_TRUE(any([](const auto& sample) { return sample.pid != 77; }));
  EXPECT_TRUE(any([](const auto& sample) { return sample.timestamp_us <= 1; }));
  EXPECT_TRUE(any([](const auto& sample) { return sample.pid == 77 && sample.sm == 40; }));
}

// NVIDIA/gpu-monitoring-tools#152: 9223372036854775794 shown as a percentage.
TEST(Habits, BlankValuesLookLikeNumbers) {
  const auto host = InstalledHost::from(driver("blank_values = true"));
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  nvml::FieldValue value{};
  value.field_id = nvml::field::kTotalEnergy;
  ASSERT_EQ(NVML(nvmlDeviceGetFieldValues, handle(0), 1, &value), nvml::kSuccess);
  EXPECT_EQ(value.result, nvml::kSuccess);
  EXPECT_EQ(value.value.as_unsigned_long_long, 9223372036854775794ULL);
  nvml::Utilization rates{};
  ASSERT_EQ(NVML(nvmlDeviceGetUtilizationRates, handle(0), &rates), nvml::kSuccess);
  EXPECT_EQ(rates.gpu, 0xffffffffU);
}

TEST(Habits, ProcessListsSayHowMuchRoomTheyNeed) {
  const auto host = InstalledHost::from(driver(""));
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  nvml::ProcessDetailList list{nvml::version_of<nvml::ProcessDetailList>(1), nvml::kModeAll, 0, nullptr};
  EXPECT_EQ(NVML(nvmlDeviceGetRunningProcessDetailList, handle(0), &list), nvml::kInsufficientSize);
  ASSERT_EQ(list.count, 1U);
  nvml::ProcessDetail entry{};
  list.processes = &entry;
  EXPECT_EQ(NVML(nvmlDeviceGetRunningProcessDetailList, handle(0), &list), nvml::kSuccess);
  EXPECT_EQ(entry.pid, 77U);
}

}  // namespace
}  // namespace gpuwright::sim
