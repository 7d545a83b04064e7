// GPUs as people name them.
#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/text.h"
#include "cli/fit_log.h"
#include "cli/fit_request.h"

namespace gpuwright::cli {
namespace {

constexpr std::int64_t kMostGpus = 1024;

struct Counted {
  std::string_view name;
  std::int64_t count = 1;
};

// "h100x8" and "8xh100" -> ("h100", 8). Digits only may stand on the count's side, so that "mi300x" stays whole.
Counted split_count(std::string_view text) {
  const auto last = text.find_last_of("xX*");
  if (last == std::string_view::npos || last == 0) return {text};
  const auto after = to_integer(trim(text.substr(last + 1)));
  if (after && *after <= kMostGpus) return {trim(text.substr(0, last)), *after};
  const auto first = text.find_first_of("xX*");
  const auto count = to_integer(trim(text.substr(0, first)));
  return count && *count <= kMostGpus ? Counted{trim(text.substr(first + 1)), *count} : Counted{text};
}

// "24GiB", "24 g", "1.5TB": a number with a unit of memory. "3090ti" and "24" are names.
std::optional<Bytes> plain_size(std::string_view name) {
  const auto letters = name.find_first_not_of("0123456789. ");
  if (letters == 0 || letters == std::string_view::npos) return std::nullopt;
  const std::string unit = lower(name.substr(letters));
  for (const std::string_view known : {"m", "mb", "mib", "g", "gb", "gib", "t", "tb", "tib"})
    if (unit == known)
      if (const auto size = parse_bytes(name)) return *size;
  return std::nullopt;
}

Result<fit::Target> target_named(std::string_view name, const catalog::Catalog& catalog) {
  if (const auto size = plain_size(name)) {
    fit::Target target;
    target.name = fmt::format("a GPU with {}", to_string(*size));
    target.total = target.free = *size;
    return target;
  }
  const auto colon = name.find(':');
  const catalog::Accelerator* accelerator = GW_TRY(catalog.find(name.substr(0, colon)));
  if (colon == std::string_view::npos) return fit::target_from(*accelerator);
  return fit::mig_target_from(*accelerator, name.substr(colon + 1));
}

}  // namespace

Result<std::vector<fit::Target>> targets_named(std::string_view text, const catalog::Catalog& catalog) {
  if (trim(text) == "here") return targets_here(catalog);
  Counted wanted = split_count(trim(text));
  // A whole name that is in the catalogue wins over NAMExN.
  if (wanted.count != 1 && catalog.find(trim(text))) wanted = {trim(text)};
  if (wanted.count < 1 || wanted.count > kMostGpus)
    return fail(ErrorCode::bad_input, fmt::format("{}: between 1 and {} GPUs, written NAMExN", text, kMostGpus));
  const fit::Target target = GW_TRY(target_named(wanted.name, catalog));
  return std::vector<fit::Target>(static_cast<std::size_t>(wanted.count), target);
}

}  // namespace gpuwright::cli
