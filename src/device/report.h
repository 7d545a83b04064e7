// What the GPUs did over a time, from the snapshots of that time: how busy they were, who held memory without using it,
// the energy, what slowed them down and what went wrong.
//
// How figures come about. Between two snapshots, a driver's figure that looks back (utilisation, throttle reasons) is
// taken from the later one; memory and power are the mean of the two. Times between snapshots that lie further apart
// than max_gap (the recording was stopped) count for nothing, and neither does time in which a value was unknown: each
// figure says over how long it is known.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/snapshot.h"

namespace gpuwright::device {

using Seconds = std::chrono::duration<double>;

struct ReportOptions {
  Seconds idle_after{600};              // at 0 % for so long: idle
  Seconds max_gap{60};                  // the longest time between two snapshots that is still counted
  Bytes least_held = Bytes{256 << 20};  // less memory than this is not worth a line in `held`
};

// A figure that is a mean over the time in which it was known.
template <class Unit>
struct OverTime {
  Unit mean, p95, max;
  Seconds known{};
};

// Memory that was held while the GPU (where known: the process) was at 0 % without interruption.
struct HeldMemory {
  int gpu = 0;
  std::int64_t pid = 0;                                  // 0: memory that no visible process holds
  std::string user, command, container, pod, slurm_job;  // of the process; empty where unknown
  UnixTime from, to;
  Seconds duration() const { return Seconds(static_cast<double>(to.nanoseconds - from.nanoseconds) / 1e9); }
  Bytes memory;        // the mean over that time
  bool still = false;  // it was so when the recording ended
};

struct Energy {
  Joules total;
  Seconds from_counter{}, from_power{};  // time covered by the driver's counter, and by power times time
};

struct Fault {
  enum class Kind : std::uint8_t { state, xid, ecc, rows, recovery };
  UnixTime time;
  int gpu = 0;
  Kind kind = Kind::state;
  std::string text;  // "ok -> lost: fell off the bus", "Xid 79", "4 more uncorrected ECC errors (12 in all)"
};
std::string_view to_string(Fault::Kind kind);

struct GpuReport {
  Gpu gpu;             // as it was seen last
  Seconds observed{};  // time that counts
  std::optional<OverTime<Ratio>> utilization;
  std::optional<OverTime<Bytes>> memory_used;
  std::optional<OverTime<Watts>> power;
  std::optional<OverTime<Celsius>> temperature;
  std::optional<Energy> energy;
  std::map<std::string, Seconds> throttled;  // by reason, without "idle"
  Seconds throttle_known{};
};

// Of one process, or of one user (then pid is 0 and the command empty).
struct UserReport {
  std::int64_t pid = 0;
  std::string user, command, container, pod, slurm_job;
  Seconds held{};  // on each GPU once, however many processes the user had there; two GPUs count twice
  Seconds busy{};  // held, times the share of the GPU that it used; only where the driver tells that share
  bool busy_known = false;
  Bytes memory_max;  // on one GPU
  // Of the energy of its GPUs while it was there: shared by use where the driver tells it for all processes, else by
  // memory. What a GPU used with nobody on it belongs to nobody.
  Joules energy;
  bool energy_by_use = true;  // false: some of it was shared by memory
};

struct Report {
  std::string hostname, simulated;
  UnixTime from, to;
  std::int64_t snapshots = 0;
  Seconds observed{};
  std::vector<GpuReport> gpus;
  std::vector<HeldMemory> held;  // the longest first
  std::vector<Fault> faults;     // in order of time
  std::int64_t faults_left_out = 0;
  std::vector<UserReport> processes, users;  // most GPU time first
};

// Takes snapshots in order of time, as many as there are, in bounded memory. Not thread-safe.
class Reporter {
 public:
  explicit Reporter(const ReportOptions& options = {});
  Reporter(Reporter&&) noexcept;
  Reporter& operator=(Reporter&&) noexcept;
  ~Reporter();

  void add(const Snapshot& snapshot);
  Report finish();  // once, after the last one

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gpuwright::device
