// The machine around the GPU: memory, shared memory, limits, disks, WSL.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "device/sysfs/host_memory.h"
#include "doctor/checks/checks.h"
#include "doctor/kernel_lines.h"

namespace gpuwright::doctor {
namespace {

constexpr Bytes kGibibyte{std::int64_t{1} << 30};

// Inside of WSL the driver is Windows'; a Linux driver there hides its libcuda.
Outcome check_wsl(const Machine& machine) {
  if (!machine.surroundings().wsl) return not_applicable("not WSL");
  const Host& host = machine.host();
  Outcome outcome = fine();
  for (const auto& library : machine.nvidia().cuda_libraries)
    if (!library.path.starts_with("/usr/lib/wsl/"))
      outcome.wrong("sys.wsl_driver").version("driver_version", library.version).seen(library.path, library.version);
  if (outcome.state == State::wrong) return outcome;
  if (!host.exists("/usr/lib/wsl/lib/libcuda.so.1") && !host.exists("/dev/dxg"))
    outcome.wrong("sys.wsl_none").seen("/dev/dxg", "is not there");
  else if (!host.exists("/usr/lib/wsl/lib/libcuda.so.1"))
    outcome.wrong("sys.wsl_library").seen("/usr/lib/wsl/lib", "no libcuda.so.1");
  return outcome;
}

// cgroup v2's memory.events: "oom_kill 3".
std::int64_t oom_kills(const Host& host) {
  const auto events = host.text("/sys/fs/cgroup/memory.events");
  if (!events) return 0;
  for (const std::string_view line : split(*events, '\n'))
    if (line.starts_with("oom_kill ")) return to_integer(trim(line.substr(9))).value_or(0);
  return 0;
}

Outcome check_memory(const Machine& machine) {
  const Host& host = machine.host();
  Outcome outcome = fine();
  if (const std::int64_t kills = oom_kills(host); kills > 0)
    outcome.wrong("sys.oom")
        .fact("kills", kills)
        .seen("/sys/fs/cgroup/memory.events", fmt::format("oom_kill {}", kills));
  if (const auto line = find_in_log(host, {"Out of memory: Killed process"}))
    outcome.wrong("sys.oom").fact("kills", line->count).evidence.push_back(*line);
  const auto text = host.text("/proc/meminfo");
  if (!text) return outcome.state == State::wrong ? outcome : unknown("/proc/meminfo cannot be read");
  const device::HostMemory memory = device::parse_meminfo(*text);
  if (outcome.state == State::ok && memory.total && memory.available) {
    outcome.text = fmt::format("{} of {} available", to_string(*memory.available), to_string(*memory.total));
    if (*memory.available < kGibibyte && memory.total->count > 4 * kGibibyte.count)
      outcome.wrong("sys.memory")
          .fact("available_bytes", *memory.available)
          .fact("total_bytes", *memory.total)
          .seen("/proc/meminfo", fmt::format("MemAvailable {}", to_string(*memory.available)));
  }
  return outcome;
}

Outcome check_shm(const Machine& machine) {
  const auto space = machine.host().space("/dev/shm");
  if (!space) return unknown("the size of /dev/shm is not known");
  Outcome outcome = fine(to_string(space->total));
  if (space->total < kGibibyte)
    outcome.wrong("sys.shm").fact("total_bytes", space->total).seen("/dev/shm", to_string(space->total));
  else if (space->free.count < 64 << 20)
    outcome.wrong("sys.shm_full").fact("total_bytes", space->total).seen("/dev/shm", to_string(space->free) + " free");
  return outcome;
}

bool has_rdma(const Host& host) {
  return !host.names("/sys/class/infiniband").empty();
}

Outcome check_limits(const Machine& machine) {
  const Host& host = machine.host();
  Outcome outcome = fine();
  const auto locked = host.limit("memlock"), space = host.limit("as"), files = host.limit("nofile");
  if (!locked && !space && !files) return unknown("the limits are not known");
  if (locked && locked->value && has_rdma(host))
    outcome.wrong("sys.memlock")
        .fact("limit_bytes", Bytes{*locked->value})
        .seen("ulimit -l", to_string(Bytes{*locked->value}));
  if (space && space->value)
    outcome.wrong("sys.address_space")
        .fact("limit_bytes", Bytes{*space->value})
        .seen("ulimit -v", to_string(Bytes{*space->value}));
  constexpr std::int64_t kFewFiles = 1024;
  if (files && files->value && *files->value < kFewFiles)
    outcome.wrong("sys.files").fact("limit", *files->value).seen("ulimit -n", fmt::format("{}", *files->value));
  return outcome;
}

Outcome check_disk(const Machine& machine) {
  const Host& host = machine.host();
  Outcome outcome = fine();
  int known = 0;
  const std::string home = host.variable("HOME").value_or("");
  for (const std::string& folder : {host.working_directory(), std::string("/tmp"), home + "/.cache"}) {
    if (folder == "/.cache") continue;
    const auto space = host.space(folder);
    if (!space) continue;
    ++known;
    if (space->free < kGibibyte && space->total > kGibibyte)
      outcome.wrong("sys.disk")
          .item("folders", folder)
          .fact("free_bytes", space->free)
          .seen(folder, to_string(space->free) + " free");
  }
  return known > 0 ? outcome : unknown("free space is not known");
}

}  // namespace

std::vector<Check> system_checks() {
  return {{"sys.wsl", Layer::system, check_wsl},
          {"sys.memory", Layer::system, check_memory},
          {"sys.shm", Layer::system, check_shm, Check::Use::both},
          {"sys.limits", Layer::system, check_limits},
          {"sys.disk", Layer::system, check_disk}};
}

}  // namespace gpuwright::doctor
