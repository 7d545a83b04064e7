#include "cli/live/kill.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iostream>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/live/processes.h"
#include "device/process/proc_files.h"
#include "device/sysfs/attribute.h"

namespace gpuwright::cli {
namespace {

using device::Process;

struct NamedSignal {
  std::string_view name;
  int number;
};
constexpr std::array<NamedSignal, 9> kSignals = {{{"TERM", SIGTERM},
                                                  {"KILL", SIGKILL},
                                                  {"INT", SIGINT},
                                                  {"HUP", SIGHUP},
                                                  {"QUIT", SIGQUIT},
                                                  {"STOP", SIGSTOP},
                                                  {"CONT", SIGCONT},
                                                  {"USR1", SIGUSR1},
                                                  {"USR2", SIGUSR2}}};

// When the process began, in seconds since 1970.
std::optional<double> start_of(std::int64_t pid) {
  const auto stat = device::parse_proc_stat(device::read_start(fmt::format("/proc/{}/stat", pid)).text);
  const auto boot = device::parse_boot_time(device::read_start("/proc/stat", 1 << 20).text);
  if (!stat || !boot) return std::nullopt;
  return static_cast<double>(*boot) + static_cast<double>(stat->start_tick) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

tl::unexpected<Error> refused(std::int64_t pid, int error) {
  if (error == EPERM)
    return fail(ErrorCode::unavailable, fmt::format("process {} belongs to another user", pid),
                "its owner or root can end it");
  if (error == ESRCH) return fail(ErrorCode::not_found, fmt::format("process {} has ended", pid));
  return fail(ErrorCode::unavailable, fmt::format("process {}: {}", pid, std::strerror(error)));
}

std::string described(const Process& process, const std::vector<int>& gpus) {
  return fmt::format("process {} of {} on GPU {}: {}", *process.pid_here, process.user.value_or("an unknown user"),
                     fmt::join(gpus, ", "), printable(process.command.value_or("n/a")));
}

bool confirmed(const Console& console, const std::string& question) {
  console.err << question << " [y/N] " << std::flush;
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "Y" || answer == "yes");
}

}  // namespace

Result<int> signal_named(std::string_view name) {
  if (const auto number = to_integer(name); number && *number >= 1 && *number <= 64) return static_cast<int>(*number);
  const std::string_view bare = starts_with_ignoring_case(name, "SIG") ? name.substr(3) : name;
  std::vector<std::string> names;
  for (const NamedSignal& signal : kSignals) {
    if (lower(signal.name) == lower(bare)) return signal.number;
    names.emplace_back(signal.name);
  }
  return fail(ErrorCode::bad_input, fmt::format("--signal: there is no signal '{}'", name),
              fmt::format("{}, or a number", fmt::join(names, ", ")));
}

Result<HeldProcess> HeldProcess::open(std::int64_t pid, const device::Reading<device::UnixTime>& started) {
  if (pid <= 1 || pid > std::numeric_limits<int>::max())
    return fail(ErrorCode::bad_input, fmt::format("{} is no process that may be ended", pid));
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
  if (descriptor < 0) return refused(pid, errno);
  HeldProcess held(descriptor, pid);
  const auto now = start_of(pid);
  // Both are made from a boot time that is told in whole seconds.
  constexpr double kTolerance = 2.0;
  if (!now) return refused(pid, ESRCH);
  if (!started || std::abs(*now - static_cast<double>(started->nanoseconds) / 1e9) > kTolerance)
    return fail(ErrorCode::not_found, fmt::format("process {} is no longer the one that was on the GPU", pid),
                "look again: gpuwright ps");
  return held;
}

HeldProcess::~HeldProcess() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status HeldProcess::send(int signal) const {
  if (syscall(SYS_pidfd_send_signal, descriptor_, signal, nullptr, 0) != 0) return refused(pid_, errno);
  return {};
}

Result<int> kill_gpu_process(const device::Snapshot& snapshot, std::int64_t pid, int signal, bool yes,
                             const Console& console) {
  if (!snapshot.simulated.empty())
    return fail(ErrorCode::unsupported, "a simulated process cannot be ended", "leave out --simulate");
  const Process* found = nullptr;
  std::vector<int> gpus;
  std::vector<std::string> others;
  for (const Process* process : in_order(snapshot)) {
    if (process->pid_here) others.push_back(fmt::format("{}", *process->pid_here));
    if (!process->pid_here || *process->pid_here != pid) continue;
    found = process;
    gpus.push_back(process->gpu);
  }
  if (!found)
    return fail(ErrorCode::not_found, fmt::format("process {} is not on a GPU", pid),
                others.empty() ? "no process that is visible from here is"
                               : fmt::format("these are: {}", fmt::join(others, ", ")));
  const HeldProcess held = GW_TRY(HeldProcess::open(pid, found->started));
  if (!yes && !(is_terminal(0) && console.terminal))
    return fail(ErrorCode::bad_input, "ending a process needs a yes", "add --yes");
  if (!yes && !confirmed(console, fmt::format("End {}?", described(*found, gpus)))) return kAnswerIsNo;
  GW_TRY(held.send(signal));
  console.err << fmt::format("sent signal {} to {}\n", signal, described(*found, gpus));
  return kDone;
}

}  // namespace gpuwright::cli
