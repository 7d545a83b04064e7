// What NVIDIA's drivers are known to answer in the field, each case with where it was met: devices that fail,
// sleep, come and go, and those that hang.
#include "device/testing/nvml_case.h"

namespace gpuwright::device::nvidia {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
