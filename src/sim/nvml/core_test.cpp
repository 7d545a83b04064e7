// What every client asks first, on the built-in host of eight H100.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "sim/testing/installed_host.h"

namespace gpuwright::sim {
namespace {

class Core : public testing::Test {
 protected:
  Core() : host_(InstalledHost::built_in("8xh100")) {
    host_->set_time(100);
    EXPECT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  }
  InstalledHost host_;
};

TEST_F(Core, CountsAndNamesItsDevices) {
  unsigned count = 0;
  ASSERT_EQ(NVML(nvmlDeviceGetCount_v2, &count), nvml::kSuccess);
  ASSERT_EQ(count, 8U);
  std::set<std::string> uuids, addresses;
  for (unsigned i = 0; i < count; ++i) {
    std::array<char, nvml::kNameSize> name{};
    std::array<char, nvml::kUuidSize> uuid{};
    nvml::PciInfo pci{};
    ASSERT_EQ(NVML(nvmlDeviceGetName, handle(i), name.data(), nvml::kNameSize), nvml::kSuccess);
    ASSERT_EQ(NVML(nvmlDeviceGetUUID, handle(i), uuid.data(), nvml::kUuidSize), nvml::kSuccess);
    ASSERT_EQ(NVML(nvmlDeviceGetPciInfo_v3, handle(i), &pci), nvml::kSuccess);
    EXPECT_STREQ(name.data(), "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(std::string(uuid.data()).size(), std::strlen("GPU-00000000-0000-0000-0000-000000000000"));
    EXPECT_EQ(pci.pci_device_id, 0x233010deU);  // H100 SXM5 80GB, pci.ids
    uuids.insert(uuid.data());
    addresses.insert(pci.bus_id);
  }
  EXPECT_EQ(uuids.size(), 8U);
  EXPECT_EQ(addresses.size(), 8U);
}

// nvidia-smi shows 81559 MiB for this board; used = total - free - reserved.
TEST_F(Core, MemoryAddsUpInBothVersions) {
  nvml::Memory old{};
  nvml::MemoryV2 memory{};
  memory.version = nvml::version_of<nvml::MemoryV2>(2);
  ASSERT_EQ(NVML(nvmlDeviceGetMemoryInfo, handle(7), &old), nvml::kSuccess);
  ASSERT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2, handle(7), &memory), nvml::kSuccess);
  EXPECT_EQ(memory.total >> 20, 81559U);
  EXPECT_EQ(memory.total, memory.free + memory.used + memory.reserved);
  EXPECT_EQ(old.used, memory.used + memory.reserved);
  EXPECT_EQ(memory.used >> 20, 70412U + 3172U);  // the two processes of the scenario
}

TEST_F(Core, ListsProcessesInEveryForm) {
  unsigned count = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3, handle(7), &count, nullptr), nvml::kInsufficientSize);
  ASSERT_EQ(count, 2U);
  std::vector<nvml::ProcessInfoV2> processes(count);
  ASSERT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3, handle(7), &count, processes.data()), nvml::kSuccess);
  EXPECT_EQ(processes[0].pid, 41208U);
  EXPECT_EQ(processes[0].used_gpu_memory >> 20, 70412U);
  EXPECT_EQ(processes[1].pid, 52007U);
  EXPECT_EQ(processes[1].gpu_instance, nvml::kNoInstance);
  std::vector<nvml::ProcessInfoV1> old(count);
  ASSERT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses, handle(7), &count, old.data()), nvml::kSuccess);
  EXPECT_EQ(old[1].used_gpu_memory >> 20, 3172U);
  count = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetGraphicsRunningProcesses_v3, handle(7), &count, nullptr), nvml::kSuccess);
  EXPECT_EQ(count, 0U);
}

TEST_F(Core, TheSameMomentGivesTheSameAnswer) {
  nvml::Utilization first{}, second{}, later{};
  ASSERT_EQ(NVML(nvmlDeviceGetUtilizationRates, handle(0), &first), nvml::kSuccess);
  ASSERT_EQ(NVML(nvmlDeviceGetUtilizationRates, handle(0), &second), nvml::kSuccess);
  host_->set_time(110);
  ASSERT_EQ(NVML(nvmlDeviceGetUtilizationRates, handle(0), &later), nvml::kSuccess);
  EXPECT_EQ(first.gpu, second.gpu);
  EXPECT_NE(first.gpu, later.gpu);
  EXPECT_LE(later.gpu, 100U);
}

// Energy is what power adds up to: 1 mJ is 1 mW for a second.
TEST_F(Core, EnergyIsTheSumOfPower) {
  unsigned long long before = 0, after = 0;
  ASSERT_EQ(NVML(nvmlDeviceGetTotalEnergyConsumption, handle(0), &before), nvml::kSuccess);
  double sum = 0;
  for (int second = 1; second <= 60; ++second) {
    host_->set_time(100 + second);
    unsigned milliwatts = 0;
    ASSERT_EQ(NVML(nvmlDeviceGetPowerUsage, handle(0), &milliwatts), nvml::kSuccess);
    sum += milliwatts;
  }
  ASSERT_EQ(NVML(nvmlDeviceGetTotalEnergyConsumption, handle(0), &after), nvml::kSuccess);
  EXPECT_NEAR(static_cast<double>(after - before), sum, 100);
}

TEST_F(Core, FieldsHaveCodesOfTheirOwn) {
  std::array<nvml::FieldValue, 4> values{};
  values[0].field_id = nvml::field::kTotalEnergy;
  values[1].field_id = nvml::field::kPowerInstant;
  values[2].field_id = 9999;
  values[3].field_id = nvml::field::kNvLinkCount;
  ASSERT_EQ(NVML(nvmlDeviceGetFieldValues, handle(0), 4, values.data()), nvml::kSuccess);
  EXPECT_EQ(values[0].result, nvml::kSuccess);
  EXPECT_EQ(values[0].value_type, nvml::kUnsignedLongLong);
  EXPECT_GT(values[1].value.as_unsigned, 72'000U);
  EXPECT_EQ(values[2].result, nvml::kInvalidArgument);
  EXPECT_EQ(values[3].value.as_unsigned, 18U);  // H100 SXM: 18 links, 900 GB/s
}

TEST_F(Core, RefusesWhatIsWrong) {
  unsigned count = 0;
  char tiny[4];
  nvml::Device device = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2, 8U, &device), nvml::kInvalidArgument);
  EXPECT_EQ(NVML(nvmlDeviceGetName, handle(0), tiny, 4U), nvml::kInsufficientSize);
  EXPECT_EQ(NVML(nvmlDeviceGetName, nullptr, tiny, 4U), nvml::kInvalidArgument);
  EXPECT_EQ(NVML(nvmlDeviceGetName, reinterpret_cast<nvml::Device>(tiny), tiny, 4U), nvml::kInvalidArgument);
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2, nullptr), nvml::kInvalidArgument);
  EXPECT_EQ(NVML(nvmlDeviceGetFanSpeed, handle(0), &count), nvml::kNotSupported);
  EXPECT_EQ(nvml_symbol("nvmlDeviceGetNothing"), nullptr);
  EXPECT_EQ(NVML(nvmlShutdown), nvml::kSuccess);
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2, &count), nvml::kUninitialized);
  EXPECT_EQ(NVML(nvmlShutdown), nvml::kUninitialized);
}

TEST_F(Core, CountsCalls) {
  const auto before = nvml_calls();
  unsigned count = 0;
  for (int i = 0; i < 5; ++i) ASSERT_EQ(NVML(nvmlDeviceGetCount_v2, &count), nvml::kSuccess);
  EXPECT_EQ(nvml_calls(), before + 5);
}

TEST(NoHost, EveryCallSaysThatThereIsNoDriver) {
  install_nvml(nullptr);
  EXPECT_EQ(NVML(nvmlInit_v2), nvml::kDriverNotLoaded);
  unsigned count = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2, &count), nvml::kDriverNotLoaded);
}

}  // namespace
}  // namespace gpuwright::sim
