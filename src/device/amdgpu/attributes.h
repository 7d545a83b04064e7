// Texts of amdgpu's sysfs attributes that hold more than one number.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace gpuwright::device {

// pp_dpm_sclk and its like: one level a line, the present one with a star.
struct DpmLevels {
  std::optional<Hertz> current, highest;
};
DpmLevels parse_dpm_levels(std::string_view text);

// ras/umc_err_count and its like, since the driver was loaded.
struct RasCounts {
  std::int64_t uncorrected = 0, corrected = 0;
};
std::optional<RasCounts> parse_ras_counts(std::string_view text);

// ras/gpu_vram_bad_pages: pages that are retired, and those that wait for it.
struct BadPages {
  std::int64_t retired = 0, pending = 0, failed = 0;
};
BadPages parse_bad_pages(std::string_view text);

// ras/features: whether RAS is on for the memory controller (bit 0 of the mask).
std::optional<bool> parse_ras_features(std::string_view text);

}  // namespace gpuwright::device
