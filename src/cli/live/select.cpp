#include "cli/live/select.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace gpuwright::cli {
namespace {

using device::Gpu;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

struct Range {
  std::int64_t first = 0, last = 0;
};

// "3" or "2-5".
std::optional<Range> index_range(std::string_view word) {
  const std::size_t dash = word.find('-', 1);
  const auto first = to_integer(word.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : to_integer(word.substr(dash + 1));
  if (!first || !last || *first < 0) return std::nullopt;
  return Range{*first, *last};
}

bool is_called(const Gpu& gpu, std::string_view word) {
  const std::string wanted = lower(word);
  const auto begins = [&](std::string_view text) { return starts_with_ignoring_case(text, word); };
  if (gpu.uuid && begins(*gpu.uuid)) return true;
  for (const device::MigInstance& instance : gpu.mig_instances)
    if (instance.uuid && *instance.uuid == word) return true;
  if (gpu.pci_address && wanted.find(':') != std::string::npos) return ends_with(lower(*gpu.pci_address), wanted);
  return gpu.name && lower(*gpu.name).find(wanted) != std::string::npos;
}

std::vector<std::string> what_there_is(const device::Snapshot& snapshot) {
  std::vector<std::string> names;
  for (const Gpu& gpu : snapshot.gpus)
    names.push_back(fmt::format("{} {}", gpu.index, gpu.name.value_or(std::string(to_string(gpu.vendor)))));
  return names;
}

Status add(const device::Snapshot& snapshot, std::string_view word, std::set<std::size_t>& chosen) {
  const auto range = index_range(word);
  if (range && range->last < range->first)
    return fail(ErrorCode::bad_input, fmt::format("--gpu {}: the range ends before it begins", word));
  const std::size_t before = chosen.size();
  bool any = false;
  for (std::size_t at = 0; at < snapshot.gpus.size(); ++at) {
    const Gpu& gpu = snapshot.gpus[at];
    const bool wanted = range ? gpu.index >= range->first && gpu.index <= range->last : is_called(gpu, word);
    if (wanted) chosen.insert(at);
    any = any || wanted;
  }
  if (any || chosen.size() > before) return {};
  return fail(ErrorCode::not_found, fmt::format("--gpu {}: there is no such GPU", word),
              fmt::format("there are: {}", fmt::join(what_there_is(snapshot), ", ")));
}

}  // namespace

Result<std::vector<std::size_t>> select_gpus(const device::Snapshot& snapshot, std::string_view selection) {
  std::set<std::size_t> chosen;
  for (std::string_view word : split(selection, ',')) {
    word = trim(word);
    if (word.empty())
      return fail(ErrorCode::bad_input, fmt::format("--gpu '{}': a name or number is missing", selection),
                  "for example --gpu 0,2-3 or --gpu h100");
    GW_TRY(add(snapshot, word, chosen));
  }
  return std::vector<std::size_t>(chosen.begin(), chosen.end());
}

void keep_only(device::Snapshot& snapshot, const std::vector<std::size_t>& positions) {
  std::vector<Gpu> kept;
  std::set<int> indices;
  for (const std::size_t at : positions) {
    indices.insert(snapshot.gpus[at].index);
    kept.push_back(std::move(snapshot.gpus[at]));
  }
  snapshot.gpus = std::move(kept);
  auto& processes = snapshot.processes;
  processes.erase(std::remove_if(processes.begin(), processes.end(),
                                 [&](const device::Process& process) { return indices.count(process.gpu) == 0; }),
                  processes.end());
}

}  // namespace gpuwright::cli
