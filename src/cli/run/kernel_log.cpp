#include "cli/run/kernel_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"
#include "device/sysfs/attribute.h"

namespace gpuwright::cli {
namespace {

constexpr std::size_t kMostText = 1 << 20;
constexpr std::size_t kLongestRecord = 8192;       // as the kernel has it (CONSOLE_EXT_LOG_MAX)
constexpr ino_t kFirstPidNamespace = 0xEFFFFFFCu;  // PROC_PID_INIT_INO of linux/proc_ns.h

constexpr std::string_view kAboutGpus[] = {"NVRM:", "nvidia", "amdgpu", "amdkfd", "i915", "xe 0000:", "[drm"};
constexpr std::string_view kAboutDeath[] = {"Killed process", "Kill process",       "reaped process", "segfault at",
                                            "traps:",         "general protection", "trap "};

bool holds_any(std::string_view line, const auto& words) {
  return std::any_of(std::begin(words), std::end(words),
                     [&](std::string_view word) { return line.find(word) != std::string_view::npos; });
}

// Every number in "Killed process 4711 (python)", "python[4711]: segfault at 0".
bool names_one(std::string_view line, const std::set<pid_t>& pids) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (!digit(line[at]) || (at > 0 && line[at - 1] != ' ' && line[at - 1] != '[')) continue;
    std::size_t end = at;
    while (end < line.size() && digit(line[end])) ++end;
    const auto number = to_integer(line.substr(at, end - at));
    if (number && *number <= 1 << 30 && pids.count(static_cast<pid_t>(*number)) != 0) return true;
    at = end;
  }
  return false;
}

std::optional<std::int64_t> kills_in_file(const std::string& path) {
  return oom_kills_in(device::read_start(path, 1 << 18).text);
}

}  // namespace

KernelLog::KernelLog() : descriptor_(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (descriptor_ >= 0 && ::lseek(descriptor_, 0, SEEK_END) < 0) {
    ::close(descriptor_);
    descriptor_ = -1;
  }
  for (const std::string& file : memory_event_files(device::read_start("/proc/self/cgroup").text))
    if (events_file_.empty() && kills_in_file(file)) events_file_ = file;
  if (!events_file_.empty()) before_.in_cgroup = kills_in_file(events_file_);
  before_.on_host = kills_in_file("/proc/vmstat");
}

KernelLog::~KernelLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string KernelLog::text() {
  std::string text;
  std::array<char, kLongestRecord> record{};
  while (descriptor_ >= 0 && text.size() < kMostText) {
    const ssize_t got = ::read(descriptor_, record.data(), record.size());
    // EPIPE: the log went round meanwhile, and goes on with the oldest that is there.
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got <= 0) break;
    text += kernel_line(std::string_view(record.data(), static_cast<std::size_t>(got)));
  }
  return text;
}

KernelLog::Kills KernelLog::kills() const {
  const auto since = [](std::optional<std::int64_t> before, std::optional<std::int64_t> now) {
    return before && now ? std::optional(*now - *before) : std::nullopt;
  };
  return {events_file_.empty() ? std::nullopt : since(before_.in_cgroup, kills_in_file(events_file_)),
          since(before_.on_host, kills_in_file("/proc/vmstat"))};
}

std::string kernel_line(std::string_view record) {
  const std::size_t semicolon = record.find(';');
  if (semicolon == std::string_view::npos) return {};
  const auto fields = split(record.substr(0, semicolon), ',');
  std::string_view message = record.substr(semicolon + 1);
  message = message.substr(0, message.find('\n'));  // what follows are properties of the device
  const auto microseconds = fields.size() > 2 ? to_integer(fields[2]) : std::nullopt;
  if (!microseconds) return std::string(message) + "\n";
  return fmt::format("[{:5}.{:06}] {}\n", *microseconds / 1'000'000, *microseconds % 1'000'000, message);
}

std::string lines_of_job(std::string_view text, const std::set<pid_t>& pids, bool numbers_are_ours) {
  std::string kept;
  for (const std::string_view line : split(text, '\n')) {
    const bool death = holds_any(line, kAboutDeath) && (!numbers_are_ours || names_one(line, pids));
    if (!death && !holds_any(line, kAboutGpus)) continue;
    kept += line;
    kept += '\n';
  }
  return kept;
}

bool in_first_pid_namespace() {
  struct stat about {};
  return ::stat("/proc/self/ns/pid", &about) == 0 && about.st_ino == kFirstPidNamespace;
}

std::vector<std::string> memory_event_files(std::string_view cgroup) {
  std::vector<std::string> files;
  for (const std::string_view line : split(cgroup, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 3) continue;
    const std::string path(line.substr(fields[0].size() + fields[1].size() + 2));
    if (fields[0] == "0") {
      files.push_back("/sys/fs/cgroup" + path + "/memory.events");
      files.push_back("/sys/fs/cgroup/memory.events");  // in a namespace of its own
    } else if (fields[1] == "memory") {
      files.push_back("/sys/fs/cgroup/memory" + path + "/memory.oom_control");
      files.push_back("/sys/fs/cgroup/memory/memory.oom_control");
    }
  }
  return files;
}

std::optional<std::int64_t> oom_kills_in(std::string_view text) {
  for (const std::string_view line : split(text, '\n'))
    if (line.substr(0, 9) == "oom_kill ") return to_integer(trim(line.substr(9)));
  return std::nullopt;
}

}  // namespace gpuwright::cli
