// Formats: Linux, Documentation/gpu/amdgpu/thermal.rst (pp_dpm_*) and ras.rst (err_count, gpu_vram_bad_pages,
// features), both taken from the comments of amdgpu_pm.c and amdgpu_ras.c.
#include "device/amdgpu/attributes.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "device/sysfs/attribute.h"

namespace gpuwright::device {

// "0: 500Mhz \n1: 2575Mhz *\n"; a level "S: 19Mhz *" is deep sleep.
DpmLevels parse_dpm_levels(std::string_view text) {
  DpmLevels levels;
  for (std::string_view line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view value = trim(line.substr(colon + 1));
    const bool is_current = value.ends_with("*");
    if (is_current) value = trim(value.substr(0, value.size() - 1));
    if (value.size() < 4 || lower(value.substr(value.size() - 3)) != "mhz") continue;
    const auto megahertz = to_integer(value.substr(0, value.size() - 3));
    if (!megahertz) continue;
    const auto clock = plausible(Hertz{static_cast<double>(*megahertz) * 1e6});
    if (!clock) continue;
    if (is_current) levels.current = *clock;
    if (!levels.highest || *levels.highest < *clock) levels.highest = *clock;
  }
  return levels;
}

// "ue: 0\nce: 2\n", newer with "de: 0" (deferred).
std::optional<RasCounts> parse_ras_counts(std::string_view text) {
  const auto uncorrected = to_integer(value_of_line(text, "ue")), corrected = to_integer(value_of_line(text, "ce"));
  if (!uncorrected || !corrected || *uncorrected < 0 || *corrected < 0) return std::nullopt;
  return RasCounts{*uncorrected, *corrected};
}

// "0x00000001 : 0x00001000 : R": R retired, P pending, F cannot be reserved.
BadPages parse_bad_pages(std::string_view text) {
  BadPages pages;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (!line.starts_with("0x") || line.size() < 2 || line[line.size() - 2] != ' ') continue;
    if (line.back() == 'R') ++pages.retired;
    if (line.back() == 'P') ++pages.pending;
    if (line.back() == 'F') ++pages.failed;
  }
  return pages;
}

// "feature mask: 0x3fff"
std::optional<bool> parse_ras_features(std::string_view text) {
  std::string_view mask = value_of_line(text, "feature mask");
  if (!mask.starts_with("0x")) return std::nullopt;
  mask.remove_prefix(2);
  std::uint64_t bits = 0;
  const auto [end, error] = std::from_chars(mask.data(), mask.data() + mask.size(), bits, 16);
  if (error != std::errc() || end != mask.data() + mask.size()) return std::nullopt;
  return (bits & 1) != 0;
}

}  // namespace gpuwright::device
