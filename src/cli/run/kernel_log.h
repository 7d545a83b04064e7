// What the kernel said while the job ran: its log, as far as this user may read it, and its counts of processes that it
// ended because memory was used up.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwright::cli {

// Made when the job begins. Not thread-safe.
class KernelLog {
 public:
  KernelLog();
  ~KernelLog();
  KernelLog(const KernelLog&) = delete;
  KernelLog& operator=(const KernelLog&) = delete;

  bool readable() const { return descriptor_ >= 0; }
  // What came since, as dmesg prints it; the first 1 MiB. Once.
  std::string text();

  struct Kills {
    std::optional<std::int64_t> in_cgroup;  // of the control group that the job is in
    std::optional<std::int64_t> on_host;
  };
  Kills kills() const;  // since

 private:
  int descriptor_;
  std::string events_file_;  // memory.events or memory.oom_control of our control group
  Kills before_;
};

// "6,1234,5678901,-;NVRM: Xid ..." of /dev/kmsg -> "[    5.678901] NVRM: Xid ...".
std::string kernel_line(std::string_view record);

// The lines that are about GPUs, or about the death of the job's processes. Of others' deaths nothing stays: their
// numbers are compared, unless we are in a PID namespace of our own, where the kernel's numbers mean nothing.
std::string lines_of_job(std::string_view text, const std::set<pid_t>& pids, bool numbers_are_ours);
bool in_first_pid_namespace();

// Where the text of /proc/self/cgroup says that the memory of this process is counted.
std::vector<std::string> memory_event_files(std::string_view cgroup);
// "oom_kill 3" of memory.events and memory.oom_control, also of /proc/vmstat.
std::optional<std::int64_t> oom_kills_in(std::string_view text);

}  // namespace gpuwright::cli
