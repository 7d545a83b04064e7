// What NVIDIA's drivers are known to answer in the field, each case with where it was met: processes, memory,
// layouts of old drivers.
#include <cmath>
#include <cstring>

#include "device/fields.h"
#include "device/testing/nvml_case.h"

namespace gpuwright::device::nvidia {
namespace {

using ::testing::SizeIs;

// ---------------------------------------------------------------- what a healthy host tells

TEST_F(NvmlTest, TellsWhoIsThereAndWhatItHolds) {
  fake_.gpus[0].compute = {{4711, 19'000'000'000}};
  const Snapshot snapshot = read();
  ASSERT_THAT(snapshot.gpus, SizeIs(2));
  const Gpu& gpu = snapshot.gpus[0];
  EXPECT_EQ(gpu.name, Reading<std::string>("NVIDIA H100 80GB HBM3"));
  EXPECT_EQ(gpu.pci_address, Reading<std::string>("0000:17:00.0"));
  EXPECT_EQ(gpu.pci_id, Reading<std::string>("10de:2330"));
  EXPECT_EQ(gpu.architecture, Reading<std::string>("Hopper"));
  EXPECT_EQ(gpu.memory_used, Reading<Bytes>(Bytes{20'000'000'000}));
  EXPECT_EQ(gpu.utilization, Reading<Ratio>(Ratio{0.97}));
  EXPECT_EQ(snapshot.gpus[1].vendor_index, 1);
  ASSERT_THAT(snapshot.processes, SizeIs(1));
  EXPECT_EQ(snapshot.processes[0].pid, 4711);
  ASSERT_THAT(snapshot.drivers, SizeIs(1));
  EXPECT_EQ(snapshot.drivers[0].library_version, Reading<std::string>("550.90.07"));
  EXPECT_EQ(snapshot.drivers[0].cuda_version, Reading<std::string>("12.4"));
  EXPECT_EQ(snapshot.sources[0].outcome, SourceReport::Outcome::found);
}

TEST_F(NvmlTest, FactsAreAskedOnceAndErrorCountersSeldom) {
  read(0);
  const int names = fake_.calls["nvmlDeviceGetName"];
  read(0.5);
  read(1);
  EXPECT_EQ(fake_.calls["nvmlDeviceGetName"], names);
  EXPECT_EQ(fake_.calls["nvmlDeviceGetUtilizationRates"], 6);
  EXPECT_LT(read(1.5).vendor_calls, 25);
}

TEST_F(NvmlTest, ProcessThatComputesAndDrawsIsOneRow) {
  fake_.gpus[0].compute = {{7, 100}};
  fake_.gpus[0].graphics = {{7, 100}, {8, 50}};
  const Snapshot snapshot = read();
  ASSERT_THAT(snapshot.processes, SizeIs(2));
  EXPECT_EQ(snapshot.processes[0].kind, process_kind::kCompute | process_kind::kGraphics);
  EXPECT_EQ(snapshot.processes[1].kind, process_kind::kGraphics);
}

TEST_F(NvmlTest, ListOfProcessesThatGrowsBetweenTwoCallsIsReadWhole) {
  for (unsigned pid = 1; pid <= 200; ++pid) fake_.gpus[0].compute.push_back({pid, 1});
  EXPECT_THAT(read().processes, SizeIs(200));
}

// ---------------------------------------------------------------- utilisation of processes

// Syllo/nvtop#448, #364: NOT_FOUND only means that no process did anything since.
TEST_F(NvmlTest, NoSampleOfAProcessIsZeroPercentNotUnknown) {
  fake_.gpus[0].compute = {{7, 100}};
  fake_.gpus[0].samples_code = nvml::kNotFound;
  EXPECT_EQ(read().processes[0].sm_utilization, Reading<Ratio>(Ratio{0}));
  fake_.gpus[0].samples_code = nvml::kNotSupported;
  EXPECT_EQ(read(1).processes[0].sm_utilization, Reading<Ratio>(Why::not_supported));
}

// Syllo/nvtop#110: smUtil 37100, processes that ended, and samples that were told before.
TEST_F(NvmlTest, ImpossibleSamplesAreDropped) {
  fake_.gpus[0].compute = {{7, 100}, {8, 100}};
  fake_.gpus[0].samples = {{7, sample_time(-0.5), 30, 10, 0, 0},
                           {7, sample_time(-0.1), 37100, 10, 0, 0},
                           {8, sample_time(-90), 99, 0, 0, 0},
                           {666, sample_time(-0.1), 50, 0, 0, 0}};
  const Snapshot snapshot = read();
  ASSERT_THAT(snapshot.processes, SizeIs(2));
  EXPECT_EQ(snapshot.processes[0].sm_utilization, Reading<Ratio>(Ratio{0.3}));
  EXPECT_EQ(snapshot.processes[1].sm_utilization, Reading<Ratio>(Ratio{0}));
}

TEST_F(NvmlTest, SampleThatOnlyIsImpossibleIsNoNumber) {
  fake_.gpus[0].compute = {{7, 100}};
  fake_.gpus[0].samples = {{7, sample_time(-0.1), 37100, 10, 0, 0}};
  EXPECT_EQ(read().processes[0].sm_utilization, Reading<Ratio>(Why::implausible));
}

TEST_F(NvmlTest, SampleIsNotTakenTwice) {
  fake_.gpus[0].compute = {{7, 100}};
  fake_.gpus[0].samples = {{7, sample_time(-0.1), 60, 10, 0, 0}};
  EXPECT_EQ(read(0).processes[0].sm_utilization, Reading<Ratio>(Ratio{0.6}));
  EXPECT_EQ(read(0.2).processes[0].sm_utilization, Reading<Ratio>(Ratio{0.6}));  // the driver's period is a second
  EXPECT_EQ(read(5).processes[0].sm_utilization, Reading<Ratio>(Ratio{0}));
}

// Project-HAMi/HAMi#2015
TEST_F(NvmlTest, BusyBlackwellWhoseProcessesAllIdleDoesNotTellThem) {
  fake_.gpus[0].architecture = nvml::kBlackwell;
  fake_.gpus[0].compute = {{7, 100}};
  fake_.gpus[0].samples = {{7, sample_time(-0.1), 0, 0, 0, 0}};
  EXPECT_EQ(read().processes[0].sm_utilization, Reading<Ratio>(Why::no_data));
  fake_.gpus[0].utilization = {0, 0};
  EXPECT_EQ(read(1).processes[0].sm_utilization, Reading<Ratio>(Ratio{0}));
}

// ---------------------------------------------------------------- sentinels

// Syllo/nvtop#432, XuehaiPan/nvitop#55: 0xFFFFFFFFFFFFFFFF under WSL2 and WDDM.
TEST_F(NvmlTest, ProcessMemoryThatWindowsKeepsIsNoNumber) {
  fake_.gpus[0].compute = {{7, nvml::kMemoryNotAvailable}, {8, 0xFFFFFFFF00000000ULL}};
  const Snapshot snapshot = read();
  EXPECT_EQ(snapshot.processes[0].memory, Reading<Bytes>(Why::not_supported));
  EXPECT_EQ(snapshot.processes[1].memory, Reading<Bytes>(Why::implausible));
}

// NVIDIA/gpu-monitoring-tools#152: 9223372036854775794 shown as a percentage.
TEST_F(NvmlTest, BlankValuesAreNeverNumbers) {
  for (const unsigned id : {nvml::field::kPowerAverage, nvml::field::kTotalEnergy, nvml::field::kMemoryTemperature,
                            nvml::field::kEccUncorrectedVolatile, nvml::field::kRemappedPending})
    fake_.gpus[0].fields[id] = {nvml::kSuccess, 9223372036854775794ULL};
  fake_.gpus[0].utilization = {0xFFFFFFFF, 0x7FFFFFF2};
  const Gpu gpu = read().gpus[0];
  EXPECT_EQ(gpu.utilization, Reading<Ratio>(Why::implausible));
  EXPECT_EQ(gpu.memory_utilization, Reading<Ratio>(Why::implausible));
  EXPECT_EQ(gpu.energy, Reading<Joules>(Why::implausible));
  EXPECT_EQ(gpu.memory_temperature, Reading<Celsius>(Why::implausible));
  EXPECT_EQ(gpu.ecc_uncorrected_volatile, Reading<std::int64_t>(Why::implausible));
  EXPECT_EQ(gpu.remapping_pending, Reading<bool>(Why::implausible));
  EXPECT_FALSE(gpu.power.known());
}

TEST_F(NvmlTest, MemoryThatExceedsItsTotalIsNoNumber) {
  fake_.gpus[0].memory.used = fake_.gpus[0].memory.total + 1;
  EXPECT_EQ(read().gpus[0].memory_used, Reading<Bytes>(Why::implausible));
}

// ---------------------------------------------------------------- memory

// wookayin/gpustat#141: since 510, version 1 counts what the driver keeps as used.
TEST_F(NvmlTest, ReservedMemoryIsNotUsedMemory) {
  const Gpu gpu = read().gpus[0];
  EXPECT_EQ(*gpu.memory_used + *gpu.memory_reserved + *gpu.memory_free, *gpu.memory_total);
}

TEST_F(NvmlTest, LibraryThatIsStrictAboutVersionsAnswersWithReserved) {
  fake_.strict_versions = true;
  EXPECT_EQ(read().gpus[0].memory_reserved, Reading<Bytes>(Bytes{655'360'000}));
}

TEST_F(NvmlTest, OldDriverWithoutMemoryInfoV2TellsNoReserve) {
  fake_.take_away("nvmlDeviceGetMemoryInfo_v2");
  const Gpu gpu = read().gpus[0];
  EXPECT_EQ(gpu.memory_used, Reading<Bytes>(Bytes{20'655'360'000}));
  EXPECT_EQ(gpu.memory_reserved, Reading<Bytes>(Why::not_supported));
}

TEST_F(NvmlTest, VersionMismatchOfAStructFallsBackToTheOlderFunction) {
  fake_.replace("nvmlDeviceGetMemoryInfo_v2",
                [](nvml::Device, nvml::MemoryV2*) -> nvml::Return { return nvml::kArgumentVersionMismatch; });
  EXPECT_EQ(read().gpus[0].memory_used, Reading<Bytes>(Bytes{20'655'360'000}));
}

// Syllo/nvtop#426, lablup/all-smi#80: MemoryInfo is NOT_SUPPORTED on DGX Spark.
TEST_F(NvmlTest, Gb10HasTheMachinesMemory) {
  tree_.file("proc/meminfo", "MemTotal:       125000000 kB\nMemFree: 1 kB\nMemAvailable:   90000000 kB\n");
  fake_.gpus.resize(1);
  fake_.gpus[0].name = "NVIDIA GB10";
  fake_.gpus[0].architecture = nvml::kBlackwell;
  fake_.gpus[0].memory_code = nvml::kNotSupported;
  fake_.gpus[0].compute = {{7, 10'000'000'000}, {9, 2'000'000'000}};
  const Gpu gpu = read().gpus[0];
  EXPECT_TRUE(gpu.unified_memory);
  EXPECT_EQ(gpu.memory_total, Reading<Bytes>(Bytes{125000000LL * 1024}));
  EXPECT_EQ(gpu.memory_used, Reading<Bytes>(Bytes{12'000'000'000}));
  EXPECT_EQ(gpu.memory_free, Reading<Bytes>(Bytes{90000000LL * 1024}));
  EXPECT_EQ(gpu.host_used, Reading<Bytes>(Bytes{35000000LL * 1024 - 12'000'000'000}));
  EXPECT_EQ(gpu.pcie_generation, Reading<std::int64_t>(Why::unified_memory));  // "GEN1@1x"
}

// wookayin/gpustat#179: NOT_SUPPORTED means unified memory on a known chip only.
TEST_F(NvmlTest, OrdinaryGpuWithoutMemoryInfoIsNotUnified) {
  fake_.gpus[0].memory_code = nvml::kNotSupported;
  const Gpu gpu = read().gpus[0];
  EXPECT_FALSE(gpu.unified_memory);
  EXPECT_EQ(gpu.memory_total, Reading<Bytes>(Why::not_supported));
}

// ---------------------------------------------------------------- layouts of old drivers

// wookayin/gpustat#157, #161, gpuopenanalytics/pynvml#50: 535.43 to .86 fill 32 bytes a process.
TEST_F(NvmlTest, Early535ProcessEntriesAreThirtyTwoBytes) {
  fake_.take_away("nvmlDeviceGetRunningProcessDetailList");
  fake_.replace("nvmlDeviceGetConfComputeMemSizeInfo",
                [](nvml::Device, nvml::ConfComputeMemSizeInfo*) -> nvml::Return { return nvml::kNotSupported; });
  fake_.replace("nvmlDeviceGetComputeRunningProcesses_v3",
                [](nvml::Device, unsigned* entries, nvml::ProcessInfoV2* into) -> nvml::Return {
                  auto* wide = reinterpret_cast<nvml::ProcessDetail*>(into);
                  wide[0] = {11, 1000, nvml::kNoInstance, nvml::kNoInstance, 5};
                  wide[1] = {12, 2000, nvml::kNoInstance, nvml::kNoInstance, 6};
                  *entries = 2;
                  return nvml::kSuccess;
                });
  const Snapshot snapshot = read();
  ASSERT_THAT(snapshot.processes, SizeIs(4));  // two on each GPU
  EXPECT_EQ(snapshot.processes[1].pid, 12);
  EXPECT_EQ(snapshot.processes[1].memory, Reading<Bytes>(Bytes{2000}));
}

TEST_F(NvmlTest, DriverOf2016WithVersionOneFunctionsOnly) {
  for (const char* name :
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetFieldValues", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMigMode", "nvmlDeviceGetArchitecture",
        "nvmlDeviceGetProcessUtilization", "nvmlSystemGetCudaDriverVersion_v2", "nvmlDeviceGetPciInfo_v3"})
    fake_.take_away(name);
  fake_.replace("nvmlDeviceGetComputeRunningProcesses",
                [](nvml::Device, unsigned* entries, nvml::ProcessInfoV1* into) -> nvml::Return {
                  into[0] = {21, 3000};
                  *entries = 1;
                  return nvml::kSuccess;
                });
  const Snapshot snapshot = read();
  ASSERT_THAT(snapshot.gpus, SizeIs(2));
  EXPECT_EQ(snapshot.gpus[0].mig_mode, Reading<bool>(Why::not_supported));
  EXPECT_EQ(snapshot.gpus[0].state, State::ok);
  ASSERT_THAT(snapshot.processes, SizeIs(2));
  EXPECT_EQ(snapshot.processes[0].memory, Reading<Bytes>(Bytes{3000}));
  EXPECT_EQ(snapshot.processes[0].sm_utilization, Reading<Ratio>(Why::not_supported));
}

TEST_F(NvmlTest, OneFieldThatADriverDoesNotKnowDoesNotLoseTheOthers) {
  fake_.gpus[0].fields[nvml::field::kTotalEnergy] = {nvml::kSuccess, 5000};
  static int whole_lists = 0;
  whole_lists = 0;
  fake_.replace("nvmlDeviceGetFieldValues", [](nvml::Device, int count, nvml::FieldValue* value) -> nvml::Return {
    if (count > 1) return ++whole_lists, nvml::kInvalidArgument;
    value->value_type = nvml::kUnsignedLongLong;
    value->value.as_unsigned_long_long = 7000;
    value->result = value->field_id == nvml::field::kTotalEnergy ? nvml::kSuccess : nvml::kNotSupported;
    return nvml::kSuccess;
  });
  EXPECT_EQ(read().gpus[0].energy, Reading<Joules>(Joules{7}));
  EXPECT_GT(whole_lists, 0);
}

}  // namespace
}  // namespace gpuwright::device::nvidia
