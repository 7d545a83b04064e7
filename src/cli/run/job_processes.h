// Which processes are the job's: what it started, and what these started, also when their parents have ended and when
// they went into sessions of their own (daemons). And what all of them use of the host.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/units.h"
#include "device/snapshot.h"

namespace gpuwright::cli {

// What /proc/PID/stat tells (proc(5)).
struct StatLine {
  pid_t parent = 0;
  std::int64_t ticks = 0;  // of CPU time, with those of children that it waited for
  std::int64_t start_tick = 0;
  std::int64_t resident_pages = 0;
  bool zombie = false;
};
std::optional<StatLine> parse_stat_line(std::string_view text);

// Not thread-safe.
class JobProcesses {
 public:
  // `mark` stands in the environment of all that the job starts: "GPUWRIGHT_RUN=4711.1830". `in_containers`: the job is
  // the client of a container engine, whose containers are no children of it; those that begin with it are taken for
  // its own.
  JobProcesses(pid_t job, std::string mark, bool in_containers);

  struct Use {
    double cpu_seconds = 0;
    Bytes resident;  // pages that several share are counted several times
    int processes = 0;
  };
  // Looks at all processes of the host. Costs about 10 us each.
  Use look();

  bool owns(const device::Process& process);
  // All that were ever seen.
  const std::set<pid_t>& pids() const { return ever_; }

 private:
  bool descends(pid_t pid) const;
  bool is_marked(pid_t pid) const;
  bool began_with_job(const device::Process& process) const;

  pid_t job_;
  std::string mark_;
  bool in_containers_;
  double began_;                        // seconds since 1970
  std::map<pid_t, std::int64_t> mine_;  // with their start ticks
  std::set<pid_t> ever_;
  std::map<std::pair<std::int64_t, std::int64_t>, bool> known_;  // processes on GPUs, by pid and start
};

// The command is one that has others run in containers: docker, podman, nerdctl, ...
bool starts_containers(const std::string& program);

}  // namespace gpuwright::cli
