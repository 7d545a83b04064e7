// The texts of /proc/PID that tell about a process (proc(5)).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace gpuwright::device {

struct ProcStat {
  std::string name;             // in brackets in the file; cut to 15 bytes by the kernel
  std::int64_t cpu_ticks = 0;   // utime + stime
  std::int64_t start_tick = 0;  // after boot
};
std::optional<ProcStat> parse_proc_stat(std::string_view text);

struct ProcStatus {
  std::optional<std::uint32_t> uid;  // the real one
  std::optional<Bytes> resident;
  std::vector<std::int64_t> pids;  // NSpid: the outermost namespace that can be seen first, the process' own last
};
ProcStatus parse_proc_status(std::string_view text);

// Arguments separated by NUL bytes, joined by spaces.
std::string parse_command_line(std::string_view bytes);

// Seconds since 1970 of the boot, "btime" of /proc/stat.
std::optional<std::int64_t> parse_boot_time(std::string_view proc_stat);

}  // namespace gpuwright::device
