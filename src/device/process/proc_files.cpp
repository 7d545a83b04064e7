#include "device/process/proc_files.h"

#include <algorithm>

#include "base/text.h"
#include "device/sysfs/attribute.h"

namespace gpuwright::device {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t from = text.find_first_not_of(" \t\n", at);
    if (from == std::string_view::npos) break;
    at = std::min(text.find_first_of(" \t\n", from), text.size());
    words.push_back(text.substr(from, at - from));
  }
  return words;
}

std::optional<std::int64_t> count_of(std::string_view word) {
  const auto value = to_integer(word);
  return value && *value >= 0 ? value : std::nullopt;
}

}  // namespace

std::optional<ProcStat> parse_proc_stat(std::string_view text) {
  // The name may hold brackets and spaces: it ends at the last bracket.
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  ProcStat stat;
  stat.name = text.substr(open + 1, close - open - 1);
  // proc(5) counts from 1 = pid, 2 = name: words[0] is field 3.
  const std::vector<std::string_view> words = words_of(text.substr(close + 1));
  constexpr std::size_t kUser = 14 - 3, kSystem = 15 - 3, kStart = 22 - 3;
  if (words.size() <= kStart) return std::nullopt;
  const auto user = count_of(words[kUser]), system = count_of(words[kSystem]), start = count_of(words[kStart]);
  if (!user || !system || !start) return std::nullopt;
  const auto ticks = checked_add(*user, *system);
  if (!ticks) return std::nullopt;
  stat.cpu_ticks = *ticks;
  stat.start_tick = *start;
  return stat;
}

ProcStatus parse_proc_status(std::string_view text) {
  ProcStatus status;
  const auto uids = words_of(value_of_line(text, "Uid"));
  if (!uids.empty())
    if (const auto uid = count_of(uids.front()); uid && *uid <= UINT32_MAX)
      status.uid = static_cast<std::uint32_t>(*uid);
  const auto resident = words_of(value_of_line(text, "VmRSS"));
  if (resident.size() == 2 && resident[1] == "kB")
    if (const auto kib = count_of(resident[0]))
      if (const auto bytes = checked_multiply(*kib, 1024)) status.resident = Bytes{*bytes};
  constexpr std::size_t kMostNamespaces = 33;  // MAX_PID_NS_LEVEL + 1
  for (const std::string_view word : words_of(value_of_line(text, "NSpid"))) {
    const auto pid = count_of(word);
    if (!pid || status.pids.size() == kMostNamespaces) return status.pids.clear(), status;
    status.pids.push_back(*pid);
  }
  return status;
}

std::string parse_command_line(std::string_view bytes) {
  while (!bytes.empty() && bytes.back() == '\0') bytes.remove_suffix(1);
  std::string command(bytes);
  std::replace(command.begin(), command.end(), '\0', ' ');
  return command;
}

std::optional<std::int64_t> parse_boot_time(std::string_view proc_stat) {
  return count_of(value_of_line(proc_stat, "btime"));
}

}  // namespace gpuwright::device
