// MIG, NVLink, topology and GPM: what only some devices have.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "sim/testing/installed_host.h"

namespace gpuwright::sim {
namespace {

nvml::Device mig_handle(nvml::Device gpu, unsigned index) {
  nvml::Device instance = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetMigDeviceHandleByIndex, gpu, index, &instance), nvml::kSuccess) << index;
  return instance;
}

class Mig : public testing::Test {
 protected:
  Mig() : host_(InstalledHost::built_in("a100-mig")) {
    host_->set_time(1);
    EXPECT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  }
  InstalledHost host_;
};

TEST_F(Mig, InstancesHaveHandlesAndIds) {
  unsigned current = 0, pending = 0, most = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetMigMode, handle(0), &current, &pending), nvml::kSuccess);
  EXPECT_EQ(current, 1U);
  EXPECT_EQ(NVML(nvmlDeviceGetMigMode, handle(1), &current, &pending), nvml::kSuccess);
  EXPECT_EQ(current, 0U);
  EXPECT_EQ(NVML(nvmlDeviceGetMaxMigDeviceCount, handle(0), &most), nvml::kSuccess);
  EXPECT_EQ(most, 7U);
  nvml::Device instance = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetMigDeviceHandleByIndex, handle(0), 3U, &instance), nvml::kNotFound);
  EXPECT_EQ(NVML(nvmlDeviceGetMigDeviceHandleByIndex, handle(0), 7U, &instance), nvml::kInvalidArgument);
  instance = mig_handle(handle(0), 1);
  unsigned id = 0, is_instance = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetGpuInstanceId, instance, &id), nvml::kSuccess);
  EXPECT_EQ(id, 3U);  // 2g
  EXPECT_EQ(NVML(nvmlDeviceIsMigDeviceHandle, instance, &is_instance), nvml::kSuccess);
  EXPECT_EQ(is_instance, 1U);
  nvml::Device parent = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, instance, &parent), nvml::kSuccess);
  EXPECT_EQ(parent, handle(0));
  std::array<char, nvml::kUuidSize> uuid{};
  ASSERT_EQ(NVML(nvmlDeviceGetUUID, instance, uuid.data(), nvml::kUuidSize), nvml::kSuccess);
  EXPECT_EQ(std::string(uuid.data()).substr(0, 4), "MIG-");
  nvml::Device again = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByUUID, uuid.data(), &again), nvml::kSuccess);
  EXPECT_EQ(again, instance);
}

// Memory and processes are told of each instance, utilisation is not (NVIDIA/dcgm-exporter#216).
TEST_F(Mig, MemoryIsTheInstancesAndUtilisationIsNobodys) {
  nvml::Memory memory{};
  ASSERT_EQ(NVML(nvmlDeviceGetMemoryInfo, mig_handle(handle(0), 0), &memory), nvml::kSuccess);
  EXPECT_EQ(memory.total >> 20, static_cast<unsigned long long>(39.25 * 1024));  // 3g.40gb, MIG User Guide
  EXPECT_GE(memory.used >> 20, 31020U);
  nvml::Utilization rates{};
  EXPECT_EQ(NVML(nvmlDeviceGetUtilizationRates, mig_handle(handle(0), 0), &rates), nvml::kNotSupported);
  EXPECT_EQ(NVML(nvmlDeviceGetUtilizationRates, handle(0), &rates), nvml::kNotSupported);
  EXPECT_EQ(NVML(nvmlDeviceGetUtilizationRates, handle(1), &rates), nvml::kSuccess);
  std::array<nvml::ProcessInfoV2, 8> processes{};
  unsigned count = 8;
  ASSERT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3, mig_handle(handle(0), 1), &count, processes.data()),
            nvml::kSuccess);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(processes[0].pid, 7002U);
  count = 8;
  ASSERT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3, handle(0), &count, processes.data()), nvml::kSuccess);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(processes[0].gpu_instance, 1U);
  EXPECT_EQ(processes[1].gpu_instance, 3U);
  nvml::DeviceAttributes attributes{};
  ASSERT_EQ(NVML(nvmlDeviceGetAttributes_v2, mig_handle(handle(0), 0), &attributes), nvml::kSuccess);
  EXPECT_EQ(attributes.multiprocessors, 42U);
  EXPECT_EQ(attributes.gpu_instance_slices, 3U);
}

TEST(MigChanges, AnInstanceThatEndsTakesItsHandleAlong) {
  const auto host = InstalledHost::from(
      "[[gpu]]\nid = \"a100-sxm4-80gb\"\nmig = true\n[[gpu.instance]]\nprofile = \"3g.40gb\"\nend = 5\n"
      "[[gpu.instance]]\nprofile = \"7g.80gb\"\nstart = 5\n");
  host->set_time(0);
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  const nvml::Device old = mig_handle(handle(0), 0);
  nvml::Memory memory{};
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo, old, &memory), nvml::kSuccess);
  host->set_time(6);
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo, old, &memory), nvml::kInvalidArgument);
  unsigned id = 9;
  EXPECT_EQ(NVML(nvmlDeviceGetGpuInstanceId, mig_handle(handle(0), 0), &id), nvml::kSuccess);
  EXPECT_EQ(id, 0U);
}

TEST(Gpm, TellsWhatHappenedBetweenTwoSamples) {
  const auto host = InstalledHost::from(
      "[[gpu]]\nid = \"h100-sxm5-80gb\"\nload = {points = [[0, 0], [10, 1]]}\nsm_activity = 0.25\n"
      "pcie_sent_mb = 1048.576\n");
  host->set_time(0);
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  nvml::GpmSupport support{nvml::gpm::kSupportVersion, 0};
  ASSERT_EQ(NVML(nvmlGpmQueryDeviceSupport, handle(0), &support), nvml::kSuccess);
  EXPECT_EQ(support.supported, 1U);
  nvml::GpmMetricsGet request{};
  ASSERT_EQ(NVML(nvmlGpmSampleAlloc, &request.earlier), nvml::kSuccess);
  ASSERT_EQ(NVML(nvmlGpmSampleAlloc, &request.later), nvml::kSuccess);
  ASSERT_EQ(NVML(nvmlGpmSampleGet, handle(0), request.earlier), nvml::kSuccess);
  host->set_time(10);
  ASSERT_EQ(NVML(nvmlGpmSampleGet, handle(0), request.later), nvml::kSuccess);
  request.version = nvml::gpm::kMetricsGetVersion;
  request.count = 3;
  request.metrics[0].id = nvml::gpm::kGraphicsUtilization;
  request.metrics[1].id = nvml::gpm::kSmUtilization;
  request.metrics[2].id = nvml::gpm::kPcieSentPerSecond;
  ASSERT_EQ(NVML(nvmlGpmMetricsGet, &request), nvml::kSuccess);
  EXPECT_NEAR(request.metrics[0].value, 50, 1e-9);
  EXPECT_NEAR(request.metrics[1].value, 25, 1e-9);
  EXPECT_NEAR(request.metrics[2].value, 1000, 1e-6);  // MiB/s
  EXPECT_EQ(NVML(nvmlGpmSampleFree, request.earlier), nvml::kSuccess);
  EXPECT_EQ(NVML(nvmlGpmMetricsGet, &request), nvml::kInvalidArgument);
  EXPECT_EQ(NVML(nvmlGpmSampleFree, request.later), nvml::kSuccess);
}

TEST(Links, ASwitchJoinsAllAndABridgeTwo) {
  {
    const auto host = InstalledHost::built_in("8xh100");
    ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
    nvml::NvLinkDeviceType type{};
    EXPECT_EQ(NVML(nvmlDeviceGetNvLinkRemoteDeviceType, handle(0), 17U, &type), nvml::kSuccess);
    EXPECT_EQ(type, nvml::kNvLinkSwitch);
    nvml::EnableState active = 0;
    EXPECT_EQ(NVML(nvmlDeviceGetNvLinkState, handle(0), 18U, &active), nvml::kInvalidArgument);
    nvml::P2pStatus status{};
    EXPECT_EQ(NVML(nvmlDeviceGetP2PStatus, handle(0), handle(7), nvml::kP2pNvLink, &status), nvml::kSuccess);
    EXPECT_EQ(status, nvml::kP2pOk);
    nvml::TopologyLevel level{};
    EXPECT_EQ(NVML(nvmlDeviceGetTopologyCommonAncestor, handle(0), handle(7), &level), nvml::kSuccess);
    EXPECT_EQ(level, nvml::kTopologySystem);
    EXPECT_EQ(NVML(nvmlDeviceGetTopologyCommonAncestor, handle(2), handle(3), &level), nvml::kSuccess);
    EXPECT_EQ(level, nvml::kTopologySingle);
    unsigned long cpus[4] = {};
    EXPECT_EQ(NVML(nvmlDeviceGetCpuAffinity, handle(7), 4U, cpus), nvml::kSuccess);
    EXPECT_EQ(cpus[0], 0U);
    EXPECT_EQ(cpus[2], ~0UL);  // 128..191 of 224 CPUs lie on the second node
  }
  const auto host = InstalledHost::built_in("2x3090");
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  nvml::PciInfo remote{}, own{};
  ASSERT_EQ(NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2, handle(0), 3U, &remote), nvml::kSuccess);
  ASSERT_EQ(NVML(nvmlDeviceGetPciInfo_v3, handle(1), &own), nvml::kSuccess);
  EXPECT_STREQ(remote.bus_id, own.bus_id);
}

// Counters are the integral of the rate, so that a difference of two gives it back.
TEST(Links, CountersFollowRates) {
  const auto host =
      InstalledHost::from("[[gpu]]\nid = \"h100-sxm5-80gb\"\npcie_sent_mb = 100\nnvlink_sent_mb = 1800\n");
  ASSERT_EQ(NVML(nvmlInit_v2), nvml::kSuccess);
  std::array<nvml::FieldValue, 2> before{}, after{};
  for (auto* values : {&before, &after}) {
    host->set_time(values == &before ? 10 : 12);
    (*values)[0].field_id = nvml::field::kPcieSentBytes;
    (*values)[1].field_id = nvml::field::kNvLinkDataSent;
    (*values)[1].scope_id = 4;
    ASSERT_EQ(NVML(nvmlDeviceGetFieldValues, handle(0), 2, values->data()), nvml::kSuccess);
  }
  EXPECT_EQ(after[0].value.as_unsigned_long_long - before[0].value.as_unsigned_long_long, 200'000'000ULL);
  // 1800 MB/s over 18 links: 100 MB/s each, in KiB.
  EXPECT_NEAR(static_cast<double>(after[1].value.as_unsigned_long_long - before[1].value.as_unsigned_long_long),
              200e6 / 1024, 2);
}

}  // namespace
}  // namespace gpuwright::sim
