// Who was on the GPUs: time, use and energy of processes and users, and memory that was held without being used.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "device/report.h"

namespace gpuwright::device {

// All rows of one process on one GPU (compute and graphics, several MIG instances) together.
struct Tenant {
  Process process;  // the first of its rows
  std::optional<Bytes> memory;
  std::optional<double> use;  // 0 to 1
};
std::vector<Tenant> tenants_of(const Snapshot& snapshot, const Gpu& gpu);

// The time between two snapshots on one GPU.
struct Interval {
  int gpu = 0;  // in the report
  const Gpu* before = nullptr;
  const Gpu* after = nullptr;
  UnixTime from, to;
  Seconds time{};
  std::optional<Joules> energy;
  std::vector<Tenant> at_start, at_end;
  Reading<Bytes> unattributed_before, unattributed_after;
};

class Owners {
 public:
  void add(const Interval& interval, Seconds idle_after, Bytes least_held);
  // The recording has a hole, or the GPU was not there.
  void interrupt(int gpu, Seconds idle_after);
  void finish(Report& report, Seconds idle_after);

 private:
  using ProcessKey = std::tuple<std::int64_t, std::int64_t, std::string>;  // pid, start, command
  struct Stretch {
    HeldMemory held;
    double byte_seconds = 0;
    bool touched = false;
  };
  using StretchKey = std::tuple<int, std::int64_t, std::int64_t>;  // GPU, pid, start

  void add_use(const Interval& interval, const std::vector<const Tenant*>& stayed);
  void share_energy(const Interval& interval, const std::vector<const Tenant*>& stayed);
  void add_holding(const Interval& interval, Seconds idle_after, Bytes least_held);
  void extend(const Interval& interval, const Process* process, Bytes before, Bytes after);
  void end_stretch(Stretch& stretch, Seconds idle_after, bool still);
  UserReport& process_report(const Process& process);
  UserReport& user_report(const Process& process);
  void forget_small_processes();

  std::map<ProcessKey, UserReport> processes_;
  std::map<std::string, UserReport> users_;
  std::map<StretchKey, Stretch> stretches_;
  std::vector<HeldMemory> held_;
};

}  // namespace gpuwright::device
