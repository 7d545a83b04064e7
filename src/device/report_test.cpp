// The right values are worked out by hand beside each test.
#include "device/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuwright::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kGib = std::int64_t{1} << 30;

Snapshot at(std::int64_t seconds, int gpus = 1) {
  Snapshot snapshot;
  snapshot.hostname = "node7";
  snapshot.time = UnixTime{seconds * kSecond};
  for (int i = 0; i < gpus; ++i) {
    Gpu gpu;
    gpu.index = gpu.vendor_index = i;
    gpu.source = "nvml";
    gpu.uuid = "GPU-" + std::to_string(i);
    snapshot.gpus.push_back(gpu);
  }
  return snapshot;
}

Process& add_process(Snapshot& snapshot, int gpu, std::int64_t pid, const std::string& user, std::int64_t gib) {
  Process process;
  process.gpu = gpu;
  process.pid = pid;
  process.user = user;
  process.command = "train.py " + std::to_string(pid);
  process.started = UnixTime{pid};
  process.memory = Bytes{gib * kGib};
  snapshot.processes.push_back(process);
  return snapshot.processes.back();
}

Report report_of(const std::vector<Snapshot>& snapshots, const ReportOptions& options = {}) {
  Reporter reporter(options);
  for (const Snapshot& snapshot : snapshots) reporter.add(snapshot);
  return reporter.finish();
}

TEST(Report, FiguresAreWeightedByTime) {
  std::vector<Snapshot> snapshots = {at(0), at(60), at(80), at(120)};
  const double use[] = {0, 0.5, 1, 0.25};
  const std::int64_t gib[] = {10, 20, 20, 40};
  const double watts[] = {100, 200, 300, 100};
  for (int i = 0; i < 4; ++i) {
    Gpu& gpu = snapshots[static_cast<std::size_t>(i)].gpus[0];
    gpu.utilization = Ratio{use[i]};
    gpu.memory_used = Bytes{gib[i] * kGib};
    gpu.power = Watts{watts[i]};
  }
  const Report report = report_of(snapshots);
  EXPECT_EQ(report.snapshots, 4);
  EXPECT_EQ(report.observed, Seconds(120));
  ASSERT_THAT(report.gpus, SizeIs(1));
  const GpuReport& gpu = report.gpus[0];
  // (0.5 * 60 + 1 * 20 + 0.25 * 40) / 120
  EXPECT_DOUBLE_EQ(gpu.utilization->mean.value, 0.5);
  EXPECT_DOUBLE_EQ(gpu.utilization->max.value, 1);
  EXPECT_EQ(gpu.utilization->known, Seconds(120));
  // (15 * 60 + 20 * 20 + 30 * 40) / 120 = 20.8333 GiB
  EXPECT_NEAR(gpu.memory_used->mean.gib(), 20.8333, 1e-4);
  EXPECT_EQ(gpu.memory_used->max, Bytes{40 * kGib});
  // (150 * 60 + 250 * 20 + 200 * 40) / 120 = 183.333 W; 22000 J
  EXPECT_NEAR(gpu.power->mean.value, 183.3333, 1e-4);
  EXPECT_DOUBLE_EQ(gpu.energy->total.value, 22000);
  EXPECT_EQ(gpu.energy->from_counter, Seconds(0));
  EXPECT_FALSE(gpu.temperature);
}

TEST(Report, ThePercentileIsOfTime) {
  for (const int busy : {1, 2}) {  // of 20 times 5 s
    std::vector<Snapshot> snapshots;
    for (int i = 0; i <= 20; ++i) {
      snapshots.push_back(at(5 * i));
      snapshots.back().gpus[0].utilization = Ratio{i <= 20 - busy ? 0.1 : 0.9};
    }
    EXPECT_DOUBLE_EQ(report_of(snapshots).gpus[0].utilization->p95.value, busy == 1 ? 0.1 : 0.9);
  }
}

TEST(Report, HolesOfTheRecordingAndUnknownValuesCountForNothing) {
  std::vector<Snapshot> snapshots = {at(0), at(60), at(600), at(660), at(700)};
  for (Snapshot& snapshot : snapshots) snapshot.gpus[0].utilization = Ratio{1};
  snapshots[4].gpus[0].utilization = Why::unresponsive;
  const Report report = report_of(snapshots);
  EXPECT_EQ(report.observed, Seconds(160));
  EXPECT_EQ(report.gpus[0].utilization->known, Seconds(120));
}

TEST(Report, EnergyIsTheCountersWhereThereIsOne) {
  std::vector<Snapshot> snapshots = {at(0), at(60), at(120), at(180)};
  for (Snapshot& snapshot : snapshots) snapshot.gpus[0].power = Watts{100};
  snapshots[0].gpus[0].energy = Joules{1000};
  snapshots[1].gpus[0].energy = Joules{8000};  // 7000
  snapshots[2].gpus[0].energy = Joules{5};     // the driver was loaded again: 100 W for 60 s
  snapshots[3].gpus[0].energy = Joules{5005};  // 5000
  const Energy energy = *report_of(snapshots).gpus[0].energy;
  EXPECT_DOUBLE_EQ(energy.total.value, 7000 + 6000 + 5000);
  EXPECT_EQ(energy.from_counter, Seconds(120));
  EXPECT_EQ(energy.from_power, Seconds(60));
}

TEST(Report, ThrottlingIsToldByReason) {
  std::vector<Snapshot> snapshots = {at(0), at(60), at(120), at(150)};
  using namespace throttle;                                                    // NOLINT: names of bits
  snapshots[0].gpus[0].throttle_reasons = ThrottleReasons{kHardwareSlowdown};  // before the time
  snapshots[1].gpus[0].throttle_reasons = ThrottleReasons{kSoftwarePowerCap};
  snapshots[2].gpus[0].throttle_reasons = ThrottleReasons{kSoftwarePowerCap | kSoftwareThermal};
  snapshots[3].gpus[0].throttle_reasons = ThrottleReasons{kIdle};
  const GpuReport gpu = report_of(snapshots).gpus[0];
  EXPECT_THAT(gpu.throttled,
              ElementsAre(Pair("software power cap", Seconds(120)), Pair("software thermal slowdown", Seconds(60))));
  EXPECT_EQ(gpu.throttle_known, Seconds(150));
}

TEST(Report, IdleMemoryHasItsOwner) {
  std::vector<Snapshot> snapshots;
  for (int minute = 0; minute <= 30; ++minute) {
    Snapshot snapshot = at(60 * minute, 3);
    for (Gpu& gpu : snapshot.gpus) gpu.utilization = Ratio{0};
    // GPU 0: ada's process does nothing from minute 0 to 15, then it works.
    if (minute > 15) snapshot.gpus[0].utilization = Ratio{0.5};
    add_process(snapshot, 0, 7, "ada", minute <= 5 ? 8 : 16);
    // GPU 1: bob works and eve, beside him, only holds memory.
    snapshot.gpus[1].utilization = Ratio{0.9};
    add_process(snapshot, 1, 8, "bob", 4).sm_utilization = Ratio{0.9};
    add_process(snapshot, 1, 9, "eve", 2).sm_utilization = Ratio{0};
    // GPU 2: 3 GiB that nobody holds, for nine minutes.
    snapshot.gpus[2].memory_used = Bytes{minute <= 9 ? 3 * kGib : 0};
    snapshots.push_back(snapshot);
  }
  Report report = report_of(snapshots);
  ASSERT_THAT(report.held, SizeIs(2));
  EXPECT_EQ(report.held[0].user, "eve");
  EXPECT_EQ(report.held[0].gpu, 1);
  EXPECT_EQ(report.held[0].duration(), Seconds(1800));
  EXPECT_TRUE(report.held[0].still);
  EXPECT_EQ(report.held[1].user, "ada");
  EXPECT_EQ(report.held[1].command, "train.py 7");
  EXPECT_EQ(report.held[1].duration(), Seconds(900));
  EXPECT_FALSE(report.held[1].still);
  EXPECT_NEAR(report.held[1].memory.gib(), (5 * 8 + 1 * 12 + 9 * 16) / 15.0, 1e-6);

  ReportOptions sooner;
  sooner.idle_after = Seconds(300);
  report = report_of(snapshots, sooner);
  ASSERT_THAT(report.held, SizeIs(3));
  EXPECT_EQ(report.held[2].gpu, 2);
  EXPECT_EQ(report.held[2].pid, 0);
  EXPECT_EQ(report.held[2].duration(), Seconds(540));
  EXPECT_EQ(report.held[2].memory, Bytes{3 * kGib});
}

TEST(Report, WhatIsNotKnownToBeIdleIsNotCalledIdle) {
  std::vector<Snapshot> snapshots;
  for (int minute = 0; minute <= 30; ++minute) {
    snapshots.push_back(at(60 * minute));
    add_process(snapshots.back(), 0, 7, "ada", 8);  // neither the GPU nor the process tells its use
  }
  EXPECT_THAT(report_of(snapshots).held, IsEmpty());
}

TEST(Report, UsersHaveTheirTimeUseAndEnergy) {
  std::vector<Snapshot> snapshots;
  for (int minute = 0; minute <= 2; ++minute) {
    Snapshot snapshot = at(60 * minute, 2);
    snapshot.gpus[0].energy = Joules{6000.0 * minute};
    snapshot.gpus[1].energy = Joules{3000.0 * minute};
    add_process(snapshot, 0, 1, "ada", 10).sm_utilization = Ratio{0.4};
    add_process(snapshot, 0, 2, "ada", 20).sm_utilization = Ratio{0.2};
    add_process(snapshot, 0, 3, "eve", 5).sm_utilization = Ratio{0.2};
    add_process(snapshot, 1, 1, "ada", 30);
    if (minute >= 1) add_process(snapshot, 1, 4, "bob", 10);  // the last minute only
    snapshots.push_back(snapshot);
  }
  const Report report = report_of(snapshots);
  ASSERT_THAT(report.users, SizeIs(3));
  const UserReport &ada = report.users[0], &eve = report.users[1], &bob = report.users[2];
  EXPECT_EQ(ada.user, "ada");
  EXPECT_EQ(ada.held, Seconds(240));        // two GPUs for two minutes
  EXPECT_NEAR(ada.busy.count(), 72, 1e-9);  // 0.6 * 120 s; GPU 1 does not tell
  EXPECT_EQ(ada.memory_max, Bytes{30 * kGib});
  // GPU 0: 0.6 / 0.8 of 12000 J. GPU 1: 3000 J alone, then 30 / 40 of 3000 J by memory.
  EXPECT_NEAR(ada.energy.value, 9000 + 3000 + 2250, 1e-6);
  EXPECT_FALSE(ada.energy_by_use);
  EXPECT_EQ(eve.user, "eve");
  EXPECT_EQ(eve.held, Seconds(120));
  EXPECT_NEAR(eve.energy.value, 3000, 1e-6);
  EXPECT_TRUE(eve.energy_by_use);
  EXPECT_EQ(bob.user, "bob");
  EXPECT_EQ(bob.held, Seconds(60));
  EXPECT_FALSE(bob.busy_known);
  EXPECT_NEAR(bob.energy.value, 750, 1e-6);
  ASSERT_THAT(report.processes, SizeIs(4));
  EXPECT_EQ(report.processes[0].pid, 1);
  EXPECT_EQ(report.processes[0].held, Seconds(240));
}

TEST(Report, FaultsAreToldWithTheirTimes) {
  std::vector<Snapshot> snapshots = {at(0), at(10), at(20), at(30), at(40)};
  for (Snapshot& snapshot : snapshots) snapshot.gpus[0].ecc_uncorrected_volatile = 0;
  snapshots[0].gpus[0].ecc_uncorrected_aggregate = 8;
  snapshots[0].gpus[0].remapping_pending = false;
  snapshots[1].gpus[0].xids = {{63, UnixTime{7 * kSecond}, 1}};
  snapshots[2].gpus[0].state = State::unresponsive;
  snapshots[2].gpus[0].state_detail = "nvmlDeviceGetMemoryInfo did not answer in 1500 ms";
  snapshots[2].gpus[0].xids = snapshots[1].gpus[0].xids;
  snapshots[3].gpus[0].xids = {{63, UnixTime{25 * kSecond}, 3}};
  snapshots[3].gpus[0].ecc_uncorrected_aggregate = 12;
  snapshots[3].gpus[0].remapping_pending = true;
  snapshots[3].gpus[0].recovery_action = std::string("reset the GPU");
  snapshots[4].gpus[0] = snapshots[3].gpus[0];
  std::vector<std::pair<std::int64_t, std::string>> told;
  for (const Fault& fault : report_of(snapshots).faults)
    told.emplace_back(fault.time.nanoseconds / kSecond, fault.text);
  EXPECT_THAT(told, ElementsAre(Pair(7, "Xid 63"),
                                Pair(20, "ok -> unresponsive: nvmlDeviceGetMemoryInfo did not answer in 1500 ms"),
                                Pair(25, "Xid 63, 2 times"), Pair(30, "unresponsive -> ok"),
                                Pair(30, "4 more uncorrected ECC errors (12 in all)"),
                                Pair(30, "rows wait to be remapped: the GPU has to be reset"),
                                Pair(30, "the driver asks to reset the GPU")));
}

TEST(Report, NothingRecordedIsNoReport) {
  const Report report = report_of({});
  EXPECT_EQ(report.snapshots, 0);
  EXPECT_THAT(report.gpus, IsEmpty());
  EXPECT_FALSE(report_of({at(0)}).gpus[0].utilization);
}

// Weeks of short processes.
TEST(Report, ManyProcessesDoNotFillTheMemory) {
  Reporter reporter;
  for (int i = 0; i < 12'000; ++i) {
    Snapshot snapshot = at(i);
    for (const std::int64_t pid : {i, i + 1}) add_process(snapshot, 0, pid, "ada", 1);
    add_process(snapshot, 0, 1'000'000, "bob", 1);
    reporter.add(snapshot);
  }
  const Report report = reporter.finish();
  EXPECT_LT(report.processes.size(), 10'000u);
  EXPECT_EQ(report.processes[0].pid, 1'000'000);
  EXPECT_EQ(report.users[0].held, Seconds(11'999));
}

}  // namespace
}  // namespace gpuwright::device
