// What NVIDIA's drivers are known to answer in the field, each case with where it was met, and what is told instead.
#include "device/nvml/nvml_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "device/fields.h"
#include "device/nvml/trouble.h"
#include "device/testing/fake_library.h"
#include "device/testing/tree.h"

namespace gpuwright::device::nvidia {
namespace {

using ::testing::ElementsAre;
using testing::FakeLibrary;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::Tree;

constexpr std::int64_t kSecond = 1'000'000'000;

class NvmlTest : public ::testing::Test {
 protected:
  NvmlTest() { options_.root = tree_.root(); }

  // A read `seconds` after the first.
  Snapshot read(double seconds = 0) {
    if (!source_) source_ = std::make_unique<NvmlSource>(options_, fake_.library());
    Snapshot snapshot;
    snapshot.monotonic_ns = 100 * kSecond + static_cast<std::int64_t>(seconds * 1e9);
    snapshot.time.nanoseconds = 1'700'000'000 * kSecond + static_cast<std::int64_t>(seconds * 1e9);
    source_->read(snapshot, no_watch());
    return snapshot;
  }
  static unsigned long long sample_time(double seconds) {
    return static_cast<unsigned long long>((1'700'000'000 + seconds) * 1e6);
  }
  Tree& on_bus(const std::string& address, const std::string& power = "active") {
    const std::string folder = "sys/bus/pci/devices/" + address;
    return tree_.file(folder + "/vendor", "0x10de\n")
        .file(folder + "/class", "0x030200\n")
        .file(folder + "/power/runtime_status", power + "\n");
  }

  Tree tree_;
  SourceOptions options_;
  FakeLibrary fake_;
  std::unique_ptr<NvmlSource> source_;
};

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

// ---------------------------------------------------------------- one bad GPU among good ones

// wookayin/gpustat#125, XuehaiPan/nvitop#139: one lost GPU took all output with it.
TEST_F(NvmlTest, LostGpuKeepsItsRowAndItsNumber) {
  read(0);
  fake_.gpus[0].all = nvml::kGpuIsLost;
  const Snapshot snapshot = read(0.5);
  ASSERT_THAT(snapshot.gpus, SizeIs(2));
  EXPECT_EQ(snapshot.gpus[0].state, State::lost);
  EXPECT_EQ(snapshot.gpus[0].uuid, Reading<std::string>("GPU-0"));
  EXPECT_EQ(snapshot.gpus[0].memory_used, Reading<Bytes>(Why::lost));
  EXPECT_EQ(snapshot.gpus[0].ecc_uncorrected_volatile, Reading<std::int64_t>(Why::lost));
  EXPECT_EQ(snapshot.gpus[1].state, State::ok);
  EXPECT_EQ(snapshot.gpus[1].vendor_index, 1);
}

TEST_F(NvmlTest, LostGpuThatWasNeverSeenIsNamedByTheBus) {
  on_bus("0000:17:00.0");
  on_bus("0000:65:00.0")
      .file("proc/driver/nvidia/gpus/0000:65:00.0/information",
            "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 16\nGPU UUID: \t GPU-1\nDevice Minor: \t 1\n");
  fake_.gpus[1].handle = nvml::kGpuIsLost;
  const Snapshot snapshot = read();
  EXPECT_EQ(snapshot.gpus[1].state, State::lost);
  EXPECT_EQ(snapshot.gpus[1].pci_address, Reading<std::string>("0000:65:00.0"));
  EXPECT_EQ(snapshot.gpus[1].name, Reading<std::string>("NVIDIA H100 80GB HBM3"));
  EXPECT_EQ(snapshot.gpus[1].uuid, Reading<std::string>("GPU-1"));
}

TEST_F(NvmlTest, GpuThatThisUserMayNotOpenKeepsItsRow) {
  fake_.gpus[0].handle = nvml::kNoPermission;
  const Snapshot snapshot = read();
  ASSERT_THAT(snapshot.gpus, SizeIs(2));
  EXPECT_EQ(snapshot.gpus[0].state, State::no_permission);
  EXPECT_EQ(snapshot.gpus[0].memory_used, Reading<Bytes>(Why::no_permission));
  EXPECT_EQ(snapshot.gpus[1].state, State::ok);
}

TEST_F(NvmlTest, GpuThatNeedsAResetSaysHow) {
  fake_.gpus[1].all = nvml::kResetRequired;
  const Gpu gpu = read().gpus[1];
  EXPECT_EQ(gpu.state, State::needs_reset);
  EXPECT_THAT(gpu.state_detail, HasSubstr("nvidia-smi --gpu-reset -i 1"));
}

TEST_F(NvmlTest, GpuWhoseDriverAsksForAResetStillTellsItsValues) {
  fake_.gpus[0].fields[nvml::field::kRecoveryAction] = {nvml::kSuccess, nvml::kRecoverDrainAndReset};
  const Gpu gpu = read().gpus[0];
  EXPECT_EQ(gpu.state, State::needs_reset);
  EXPECT_EQ(gpu.recovery_action, Reading<std::string>("drain and reset"));
  EXPECT_TRUE(gpu.memory_used.known());
}

// ---------------------------------------------------------------- what comes and goes

// NVIDIA/dcgm-exporter#706: handles outlive the driver that gave them.
TEST_F(NvmlTest, DriverThatWasReloadedIsFoundAgain) {
  read(0);
  static bool reloaded = true;
  reloaded = true;
  fake_.replace("nvmlDeviceGetMigMode", [](nvml::Device, unsigned*, unsigned*) -> nvml::Return {
    return reloaded ? nvml::kUninitialized : nvml::kNotSupported;
  });
  fake_.replace("nvmlInit_v2", []() -> nvml::Return {
    reloaded = false;
    return nvml::kSuccess;
  });
  source_ = std::make_unique<NvmlSource>(options_, fake_.library());
  read(10);
  reloaded = true;
  const Snapshot snapshot = read(20);
  ASSERT_THAT(snapshot.gpus, SizeIs(2));
  EXPECT_EQ(snapshot.gpus[0].state, State::ok);
}

TEST_F(NvmlTest, GpuThatWasResetComesBackWithANewSession) {
  read(0);
  fake_.gpus[0].all = nvml::kGpuIsLost;
  EXPECT_EQ(read(1).gpus[0].state, State::lost);
  fake_.gpus[0].all = nvml::kSuccess;
  fake_.gpus[0].uuid = "GPU-0-new-board";
  const Gpu gpu = read(100).gpus[0];
  EXPECT_EQ(gpu.state, State::ok);
  EXPECT_EQ(gpu.uuid, Reading<std::string>("GPU-0-new-board"));
}

TEST_F(NvmlTest, GpuThatWasTakenAwayOrAddedChangesTheList) {
  read(0);
  fake_.gpus.resize(1);
  EXPECT_THAT(read(1).gpus, SizeIs(1));
  fake_.gpus.resize(3, fake_.gpus[0]);
  EXPECT_THAT(read(2).gpus, SizeIs(3));
}

TEST_F(NvmlTest, ErrorCountersOfAnEarlierReadAreToldOnlyWhileTheGpuAnswers) {
  fake_.gpus[0].fields[nvml::field::kRemappedUncorrected] = {nvml::kSuccess, 3};
  EXPECT_EQ(read(0).gpus[0].remapped_rows_uncorrected, Reading<std::int64_t>(3));
  EXPECT_EQ(read(1).gpus[0].remapped_rows_uncorrected, Reading<std::int64_t>(3));
  fake_.gpus[0].all = nvml::kGpuIsLost;
  EXPECT_EQ(read(2).gpus[0].remapped_rows_uncorrected, Reading<std::int64_t>(Why::lost));
}

// ---------------------------------------------------------------- sleep

// aristocratos/btop#1831, #1838: a monitor kept the laptop's GPU awake.
TEST_F(NvmlTest, SleepingGpuIsNotWoken) {
  fake_.gpus.resize(1);
  on_bus("0000:17:00.0", "suspended");
  const Snapshot snapshot = read();
  ASSERT_THAT(snapshot.gpus, SizeIs(1));
  EXPECT_EQ(snapshot.gpus[0].state, State::asleep);
  EXPECT_EQ(snapshot.gpus[0].memory_used, Reading<Bytes>(Why::asleep));
  EXPECT_THAT(fake_.calls, IsEmpty());
}

TEST_F(NvmlTest, AwakeGpuBesideASleepingOneIsAskedByItsAddress) {
  on_bus("0000:17:00.0", "suspended");
  on_bus("0000:65:00.0");
  const Snapshot snapshot = read();
  ASSERT_THAT(snapshot.gpus, SizeIs(2));
  EXPECT_EQ(snapshot.gpus[0].state, State::asleep);
  EXPECT_EQ(snapshot.gpus[1].state, State::ok);
  EXPECT_EQ(snapshot.gpus[1].uuid, Reading<std::string>("GPU-1"));
  EXPECT_EQ(fake_.calls["nvmlDeviceGetHandleByIndex_v2"], 0);
}

TEST_F(NvmlTest, GpuThatWokeUpIsReadAndWakeReadsAll) {
  fake_.gpus.resize(1);
  on_bus("0000:17:00.0", "suspended");
  EXPECT_EQ(read(0).gpus[0].state, State::asleep);
  on_bus("0000:17:00.0", "active");
  EXPECT_EQ(read(1).gpus[0].state, State::ok);
  on_bus("0000:17:00.0", "suspended");
  options_.wake = true;
  source_.reset();
  EXPECT_EQ(read(2).gpus[0].state, State::ok);
}

// ---------------------------------------------------------------- MIG

// Syllo/nvtop#256, NVIDIA/dcgm-exporter#216
TEST_F(NvmlTest, MigTellsMemoryAndProcessesPerInstance) {
  testing::FakeGpu& gpu = fake_.gpus[0];
  gpu.mig_mode = 1;
  gpu.instances = {{7, {0, 10'000'000'000, 0, 9'000'000'000, 1'000'000'000}},
                   {9, {0, 10'000'000'000, 0, 4'000'000'000, 6'000'000'000}}};
  gpu.compute = {{5, 900'000'000, 7, 0}, {6, 5'900'000'000, 9, 0}};
  const Snapshot snapshot = read();
  const Gpu& row = snapshot.gpus[0];
  EXPECT_EQ(row.utilization, Reading<Ratio>(Why::in_mig_mode));
  ASSERT_THAT(row.mig_instances, SizeIs(2));
  EXPECT_EQ(row.mig_instances[1].gpu_instance, 9);
  EXPECT_EQ(row.mig_instances[1].profile, Reading<std::string>("1g.10gb"));
  EXPECT_EQ(row.mig_instances[1].memory_used, Reading<Bytes>(Bytes{6'000'000'000}));
  EXPECT_EQ(snapshot.processes[1].gpu_instance, Reading<std::int64_t>(9));
  EXPECT_EQ(snapshot.processes[1].sm_utilization, Reading<Ratio>(Why::in_mig_mode));
  EXPECT_EQ(snapshot.gpus[1].utilization, Reading<Ratio>(Ratio{0.97}));
}

// NVIDIA/gpu-monitoring-tools#142, #188: crash and stale values after instances were made anew.
TEST_F(NvmlTest, InstancesThatWereMadeAnewAreListedAnew) {
  testing::FakeGpu& gpu = fake_.gpus[0];
  gpu.mig_mode = 1;
  gpu.instances = {{7, {0, 10, 0, 9, 1}}, {9, {0, 10, 0, 9, 1}}};
  EXPECT_THAT(read(0).gpus[0].mig_instances, SizeIs(2));
  gpu.instances = {{3, {0, 40, 0, 30, 10}}};
  const Gpu row = read(20).gpus[0];
  ASSERT_THAT(row.mig_instances, SizeIs(1));
  EXPECT_EQ(row.mig_instances[0].memory_used, Reading<Bytes>(Bytes{10}));
  gpu.mig_mode = 0;
  EXPECT_THAT(read(21).gpus[0].mig_instances, IsEmpty());
  EXPECT_EQ(read(22).gpus[0].utilization, Reading<Ratio>(Ratio{0.97}));
}

// ---------------------------------------------------------------- Xids

// NVIDIA/dcgm-exporter#500: the last code only, and for ever.
TEST_F(NvmlTest, XidsAreCountedByCodeWithTheTimeOfTheLast) {
  EXPECT_EQ(read(0).gpus[1].last_xid, Reading<std::int64_t>(Why::no_data));
  fake_.xids = {{1, 31}, {1, 94}, {1, 31}};
  const Snapshot snapshot = read(1);
  EXPECT_THAT(snapshot.gpus[1].xids, ElementsAre(XidEvent{31, snapshot.time, 2}, XidEvent{94, snapshot.time, 1}));
  EXPECT_EQ(snapshot.gpus[1].last_xid, Reading<std::int64_t>(31));
  EXPECT_THAT(snapshot.gpus[0].xids, IsEmpty());
  EXPECT_THAT(read(2).gpus[1].xids, SizeIs(2));
}

TEST_F(NvmlTest, XidOfTheMomentAGpuIsLostIsTold) {
  read(0);
  fake_.xids = {{0, 79}};
  fake_.gpus[0].all = nvml::kGpuIsLost;
  const Gpu gpu = read(1).gpus[0];
  EXPECT_EQ(gpu.state, State::lost);
  EXPECT_EQ(gpu.last_xid, Reading<std::int64_t>(79));
}

// ---------------------------------------------------------------- traffic

TEST_F(NvmlTest, PcieTrafficIsTheDifferenceOfCounters) {
  options_.wants.traffic = true;
  fake_.gpus.resize(1);
  auto& fields = fake_.gpus[0].fields;
  fields[nvml::field::kPcieSentBytes] = {nvml::kSuccess, 1'000'000};
  fields[nvml::field::kPcieReceivedBytes] = {nvml::kSuccess, 5'000'000};
  EXPECT_EQ(read(0).gpus[0].pcie_sent, Reading<BytesPerSecond>(Why::needs_two_samples));
  fields[nvml::field::kPcieSentBytes].second = 3'000'000;
  fields[nvml::field::kPcieReceivedBytes].second = 5'500'000;
  const Gpu gpu = read(2).gpus[0];
  EXPECT_EQ(gpu.pcie_sent, Reading<BytesPerSecond>(BytesPerSecond{1'000'000}));
  EXPECT_EQ(gpu.pcie_received, Reading<BytesPerSecond>(BytesPerSecond{250'000}));
  EXPECT_EQ(fake_.calls["nvmlDeviceGetPcieThroughput"], 0);
}

TEST_F(NvmlTest, CounterOfThirtyTwoBitsMayWrap) {
  ByteRate rate;
  rate.take(0xFFFFFF00ULL, 1, 32, kSecond);
  EXPECT_EQ(rate.take(0x100ULL, 1, 32, 2 * kSecond), Reading<BytesPerSecond>(BytesPerSecond{512}));
  ByteRate reset;
  reset.take(5'000'000ULL, 1, 64, kSecond);
  EXPECT_EQ(reset.take(100ULL, 1, 64, 2 * kSecond), Reading<BytesPerSecond>(Why::needs_two_samples));
}

// nvidia_gpu_exporter's documentation: 40 ms a GPU, 320 ms at 8.
TEST_F(NvmlTest, PcieThroughputThatBlocksDoesNotBlockTheReading) {
  options_.wants.traffic = true;
  fake_.gpus.resize(1);
  fake_.pcie_throughput_ms = 150;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(read(0).gpus[0].pcie_sent, Reading<BytesPerSecond>(Why::needs_two_samples));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(150));
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_EQ(read(1).gpus[0].pcie_sent, Reading<BytesPerSecond>(BytesPerSecond{1000 * 1024.0}));
  source_.reset();
}

TEST_F(NvmlTest, NvLinkTrafficIsInKibibytes) {
  options_.wants.traffic = true;
  auto& fields = fake_.gpus[0].fields;
  fields[nvml::field::kNvLinkDataSent] = {nvml::kSuccess, 1000};
  fields[nvml::field::kNvLinkDataReceived] = {nvml::kSuccess, 1000};
  read(0);
  fields[nvml::field::kNvLinkDataSent].second = 3000;
  EXPECT_EQ(read(1).gpus[0].nvlink_sent, Reading<BytesPerSecond>(BytesPerSecond{2000 * 1024.0}));
}

// Blackwell has counters of bytes per link only (nvml.h, NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES).
TEST_F(NvmlTest, NvLinkTrafficOfBlackwellIsTheSumOverItsLinks) {
  options_.wants.traffic = true;
  auto& fields = fake_.gpus[0].fields;
  fields[nvml::field::kNvLinkCount] = {nvml::kSuccess, 18};
  fields[nvml::field::kNvLinkSentBytes] = {nvml::kSuccess, 1'000'000};
  fields[nvml::field::kNvLinkReceivedBytes] = {nvml::kSuccess, 0};
  read(0);
  EXPECT_EQ(read(1).gpus[0].nvlink_sent, Reading<BytesPerSecond>(Why::needs_two_samples));
  fields[nvml::field::kNvLinkSentBytes].second = 1'500'000;
  const Gpu gpu = read(2).gpus[0];
  EXPECT_EQ(gpu.nvlink_sent, Reading<BytesPerSecond>(BytesPerSecond{18 * 500'000.0}));
  EXPECT_EQ(gpu.nvlink_received, Reading<BytesPerSecond>(BytesPerSecond{0}));
  EXPECT_EQ(read(3).gpus[1].nvlink_sent, Reading<BytesPerSecond>(Why::not_supported));
}

// ---------------------------------------------------------------- older ways to the same values

TEST_F(NvmlTest, RemappedRowsAndRetiredPagesWithoutFields) {
  fake_.take_away("nvmlDeviceGetFieldValues");
  fake_.replace("nvmlDeviceGetRemappedRows",
                [](nvml::Device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                   unsigned* failed) -> nvml::Return {
                  *corrected = 1, *uncorrected = 2, *pending = 1, *failed = 0;
                  return nvml::kSuccess;
                });
  // Asked without room, the driver says how many there are.
  fake_.replace("nvmlDeviceGetRetiredPages",
                [](nvml::Device, nvml::RetirementCause cause, unsigned* count, unsigned long long*) -> nvml::Return {
                  *count = cause == nvml::kRetiredDoubleBit ? 5 : 0;
                  return *count == 0 ? nvml::kSuccess : nvml::kInsufficientSize;
                });
  fake_.replace("nvmlDeviceGetEccMode", [](nvml::Device, nvml::EnableState* now, nvml::EnableState*) -> nvml::Return {
    *now = 1;
    return nvml::kSuccess;
  });
  fake_.replace("nvmlDeviceGetTotalEccErrors",
                [](nvml::Device, nvml::MemoryErrorType type, nvml::EccCounter counter,
                   unsigned long long* errors) -> nvml::Return {
                  *errors = 10U * static_cast<unsigned>(type) + static_cast<unsigned>(counter);
                  return nvml::kSuccess;
                });
  const Gpu gpu = read().gpus[0];
  EXPECT_EQ(gpu.remapped_rows_uncorrected, Reading<std::int64_t>(2));
  EXPECT_EQ(gpu.remapping_pending, Reading<bool>(true));
  EXPECT_EQ(gpu.retired_pages_corrected, Reading<std::int64_t>(0));
  EXPECT_EQ(gpu.retired_pages_uncorrected, Reading<std::int64_t>(5));
  EXPECT_EQ(gpu.ecc_uncorrected_aggregate, Reading<std::int64_t>(11));
}

TEST_F(NvmlTest, AddressOfTheFirstPciInfoIsPutTogether) {
  fake_.take_away("nvmlDeviceGetPciInfo_v3");
  fake_.replace("nvmlDeviceGetPciInfo", [](nvml::Device, nvml::PciInfo* pci) -> nvml::Return {
    pci->domain = 0, pci->bus = 0x3B, pci->device = 0, pci->pci_device_id = 0x1DB610DE;
    std::memset(pci->bus_id, 'x', sizeof pci->bus_id);  // version 1 does not know this part
    return nvml::kSuccess;
  });
  const Gpu gpu = read().gpus[0];
  EXPECT_EQ(gpu.pci_address, Reading<std::string>("0000:3b:00.0"));
  EXPECT_EQ(gpu.pci_id, Reading<std::string>("10de:1db6"));
}

// XuehaiPan/nvitop#168, jetson_stats: NVML answers SUCCESS with zeros and pids that are none.
TEST_F(NvmlTest, JetsonIsLeftToTheKernelsFiles) {
  fake_.gpus.resize(1);
  fake_.gpus[0].name = "Orin (nvgpu)";
  fake_.gpus[0].compute = {{4294967295U, 0}};
  const Snapshot snapshot = read();
  EXPECT_THAT(snapshot.gpus, IsEmpty());
  EXPECT_THAT(snapshot.processes, IsEmpty());
}

// NVIDIA/DCGM#152: SM activity above 100 % on MIG.
TEST(NvmlAnswer, ActivityAboveTheWholeIsTheWhole) {
  EXPECT_EQ(percent_or_clamped(nvml::kSuccess, 112.5, 25), Reading<Ratio>(Ratio{1}));
  EXPECT_EQ(percent_or_clamped(nvml::kSuccess, 1e6, 25), Reading<Ratio>(Why::implausible));
  EXPECT_EQ(percent_or_clamped(nvml::kSuccess, std::nan(""), 25), Reading<Ratio>(Why::implausible));
}

// ---------------------------------------------------------------- no way in

TEST_F(NvmlTest, LibraryThatIsNotInstalledIsAbsent) {
  SourceOptions options;
  options.nvml_library = "libno-such-nvml.so.1";
  Snapshot snapshot;
  NvmlSource(options).read(snapshot, no_watch());
  ASSERT_THAT(snapshot.sources, SizeIs(1));
  EXPECT_EQ(snapshot.sources[0].outcome, SourceReport::Outcome::absent);
  EXPECT_EQ(snapshot.sources[0].text, "libno-such-nvml.so.1 is not installed");
}

TEST_F(NvmlTest, CapturedTreeDoesNotShowTheGpusOfThisMachine) {
  SourceOptions options;
  options.root = tree_.root();
  Snapshot snapshot;
  NvmlSource(options).read(snapshot, no_watch());
  EXPECT_EQ(snapshot.sources[0].outcome, SourceReport::Outcome::absent);
}

// Syllo/nvtop#95, XuehaiPan/nvitop#41: "No GPU to monitor", exit code 0.
TEST_F(NvmlTest, MismatchOfDriverAndLibraryNamesBothVersionsAndTheCure) {
  tree_.file("proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n");
  fake_.init = nvml::kLibRmVersionMismatch;
  const Snapshot snapshot = read();
  EXPECT_THAT(snapshot.gpus, IsEmpty());
  ASSERT_THAT(snapshot.sources, SizeIs(1));
  EXPECT_EQ(snapshot.sources[0].outcome, SourceReport::Outcome::failed);
  EXPECT_EQ(snapshot.sources[0].text, "the kernel module is 535.54.03, the library 550.90.07: versions differ");
  EXPECT_THAT(snapshot.sources[0].hint, HasSubstr("reboot"));
  EXPECT_EQ(snapshot.drivers[0].version, Reading<std::string>("535.54.03"));
}

TEST_F(NvmlTest, OpenKernelModuleTellsItsVersionInOtherWords) {
  tree_.file("proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder)\n");
  EXPECT_EQ(HostFiles(options_).module_version(), "570.86.15");
}

TEST_F(NvmlTest, ModuleThatIsNotLoadedIsAFaultOnlyWhereThereIsAGpu) {
  fake_.init = nvml::kDriverNotLoaded;
  EXPECT_EQ(read().sources[0].outcome, SourceReport::Outcome::absent);
  on_bus("0000:17:00.0");
  const SourceReport report = read(20).sources[0];
  EXPECT_EQ(report.outcome, SourceReport::Outcome::failed);
  EXPECT_THAT(report.hint, HasSubstr("modprobe nvidia"));
}

// NVIDIA/nvidia-container-toolkit#48, #251, #1227
TEST(NvmlTrouble, ContainerThatLostItsDevicesNamesDaemonReload) {
  InitFailure failure;
  failure.code = nvml::kUnknown;
  failure.nodes_forbidden = failure.inside_container = true;
  const SourceReport report = report_of(failure);
  EXPECT_THAT(report.text, HasSubstr("/dev/nvidia*"));
  EXPECT_THAT(report.hint, HasSubstr("systemctl daemon-reload"));
}

TEST(NvmlTrouble, UnknownErrorKeepsTheDriversWords) {
  InitFailure failure;
  failure.code = nvml::kUnknown;
  failure.driver_words = "Unknown Error";
  EXPECT_EQ(report_of(failure).text, "nvmlInit: Unknown Error (code 999)");
}

// ---------------------------------------------------------------- the collector's part

class BarringWatch : public CallWatch {
 public:
  explicit BarringWatch(int barred) : barred_(barred) {}
  void enter(std::string_view, int device, const char*) override { asked_ = asked_ || device == barred_; }
  void leave() override {}
  bool forbidden(std::string_view, int device) const override { return device == barred_; }
  bool asked() const { return asked_; }

 private:
  int barred_;
  bool asked_ = false;
};

TEST_F(NvmlTest, DeviceThatHungBeforeIsNotAskedAndKeepsItsRow) {
  source_ = std::make_unique<NvmlSource>(options_, fake_.library());
  BarringWatch watch(1);
  Snapshot snapshot;
  source_->read(snapshot, watch);
  ASSERT_THAT(snapshot.gpus, SizeIs(2));
  EXPECT_FALSE(watch.asked());
  EXPECT_EQ(snapshot.gpus[1].state, State::unresponsive);
  EXPECT_EQ(snapshot.gpus[0].state, State::ok);
}

}  // namespace
}  // namespace gpuwright::device::nvidia
