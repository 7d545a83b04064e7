#include "device/tegra/nvmap.h"

#include <map>

#include "base/text.h"

namespace gpuwright::device {

// A process' name may hold spaces: pid and size are the last two words.
std::vector<NvmapClient> parse_nvmap_clients(std::string_view text) {
  constexpr std::size_t kMostClients = 4096;
  std::map<std::int64_t, Bytes> held;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    const std::size_t size_at = line.find_last_of(" \t");
    if (!line.ends_with("K") || size_at == std::string_view::npos || line.starts_with("total")) continue;
    const auto kib = to_integer(line.substr(size_at + 1, line.size() - size_at - 2));
    const std::string_view rest = trim(line.substr(0, size_at));
    const std::size_t pid_at = rest.find_last_of(" \t");
    const auto pid = to_integer(rest.substr(pid_at == std::string_view::npos ? 0 : pid_at + 1));
    const auto bytes = kib ? checked_multiply(*kib, 1024) : std::nullopt;
    if (!pid || *pid <= 0 || !bytes || (held.size() >= kMostClients && !held.contains(*pid))) continue;
    Bytes& sum = held[*pid];
    sum = Bytes{checked_add(sum.count, *bytes).value_or(sum.count)};
  }
  std::vector<NvmapClient> clients;
  for (const auto& [pid, memory] : held) clients.push_back({pid, memory});
  return clients;
}

}  // namespace gpuwright::device
