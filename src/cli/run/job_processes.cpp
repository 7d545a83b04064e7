#include "cli/run/job_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "base/text.h"
#include "device/sysfs/attribute.h"

namespace gpuwright::cli {
namespace {

constexpr int kMostAncestors = 64;
constexpr std::size_t kMostKnown = 4096;
constexpr double kClockSlack = 2;  // start times come from a boot time that is told in whole seconds
// Fields of /proc/PID/stat behind the name, from 0.
constexpr std::size_t kState = 0, kParent = 1, kUserTime = 11, kChildSystemTime = 14, kStart = 19, kResident = 21;

std::string text_of(const std::string& path) {
  std::array<char, 1024> text{};
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  const ssize_t got = ::read(descriptor, text.data(), text.size());
  ::close(descriptor);
  return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
}

std::optional<StatLine> stat_of(pid_t pid) {
  return parse_stat_line(text_of(fmt::format("/proc/{}/stat", pid)));
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr)
    if (const auto pid = to_integer(entry->d_name)) pids.push_back(static_cast<pid_t>(*pid));
  return pids;
}

}  // namespace

std::optional<StatLine> parse_stat_line(std::string_view text) {
  // The name may hold anything; the last bracket ends it.
  const std::size_t end = text.rfind(')');
  if (end == std::string_view::npos || end + 2 > text.size()) return std::nullopt;
  const auto fields = split(trim(text.substr(end + 2)), ' ');
  if (fields.size() <= kResident) return std::nullopt;
  const auto number = [&](std::size_t field) { return to_integer(fields[field]).value_or(0); };
  StatLine line;
  line.zombie = fields[kState] == "Z" || fields[kState] == "X";
  line.parent = static_cast<pid_t>(number(kParent));
  for (std::size_t field = kUserTime; field <= kChildSystemTime; ++field) line.ticks += number(field);
  line.start_tick = number(kStart);
  line.resident_pages = number(kResident);
  return line;
}

JobProcesses::JobProcesses(pid_t job, std::string mark, bool in_containers)
    : job_(job),
      mark_(std::move(mark)),
      in_containers_(in_containers),
      began_(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()) {
  ever_.insert(job);
  if (const auto line = stat_of(job)) mine_[job] = line->start_tick;
}

JobProcesses::Use JobProcesses::look() {
  std::map<pid_t, StatLine> lines;
  for (const pid_t pid : all_processes())
    if (const auto line = stat_of(pid)) lines.emplace(pid, *line);
  std::map<pid_t, std::int64_t> mine;
  const auto keep = [&](pid_t pid, const StatLine& line) {
    mine[pid] = line.start_tick;
    if (ever_.size() < kMostKnown) ever_.insert(pid);
  };
  for (const auto& [pid, start] : mine_)
    if (const auto found = lines.find(pid); found != lines.end() && found->second.start_tick == start)
      keep(pid, found->second);
  // Parents mostly have lower numbers than their children, so a pass or two suffice.
  for (bool more = true; more;) {
    more = false;
    for (const auto& [pid, line] : lines)
      if (mine.count(pid) == 0 && mine.count(line.parent) != 0) {
        keep(pid, line);
        more = true;
      }
  }
  mine_ = std::move(mine);

  Use use;
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  for (const auto& [pid, start] : mine_) {
    const StatLine& line = lines.at(pid);
    use.cpu_seconds += static_cast<double>(line.ticks) / ticks;
    use.resident += Bytes{line.resident_pages * page};
    if (!line.zombie) ++use.processes;
  }
  return use;
}

bool JobProcesses::owns(const device::Process& process) {
  if (!process.pid_here) return in_containers_ && began_with_job(process);
  const auto pid = static_cast<pid_t>(*process.pid_here);
  if (mine_.count(pid) != 0) return true;
  const std::pair<std::int64_t, std::int64_t> key = {pid, process.started ? process.started->nanoseconds : 0};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const bool own = descends(pid) || is_marked(pid) || (in_containers_ && began_with_job(process));
  if (known_.size() >= kMostKnown) known_.clear();
  known_[key] = own;
  if (!own) return false;
  if (const auto line = stat_of(pid)) mine_[pid] = line->start_tick;
  if (ever_.size() < kMostKnown) ever_.insert(pid);
  return true;
}

bool JobProcesses::descends(pid_t pid) const {
  for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
    if (pid == job_ || mine_.count(pid) != 0) return true;
    const auto line = stat_of(pid);
    if (!line) return false;
    pid = line->parent;
  }
  return false;
}

bool JobProcesses::is_marked(pid_t pid) const {
  const std::string path = fmt::format("/proc/{}/environ", pid);
  const std::string environment = device::read_start(path, 1 << 18).text;
  const std::size_t at = environment.find(mark_);
  if (at == std::string::npos || (at > 0 && environment[at - 1] != '\0')) return false;
  const std::size_t end = at + mark_.size();
  return end == environment.size() || environment[end] == '\0';
}

bool JobProcesses::began_with_job(const device::Process& process) const {
  if (!process.container || process.container->empty() || !process.started) return false;
  return static_cast<double>(process.started->nanoseconds) / 1e9 >= began_ - kClockSlack;
}

bool starts_containers(const std::string& program) {
  const std::string name = program.substr(program.rfind('/') + 1);
  for (const std::string_view engine : {"docker", "docker-compose", "podman", "nerdctl", "crictl", "kubectl"})
    if (name == engine) return true;
  return false;
}

}  // namespace gpuwright::cli
