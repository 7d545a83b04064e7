// Targets from catalogue rows: whole devices and MIG slices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "fit/fit.h"

namespace gpuwright::fit {

namespace {

Hardware hardware_of(const catalog::Accelerator& accelerator) {
  return {accelerator.vendor, accelerator.compute_capability.value_or(""), accelerator.nvlink_gb_per_second};
}

}  // namespace

Target target_from(const catalog::Accelerator& accelerator) {
  return {accelerator.name,         accelerator.usable(),       accelerator.usable(),
          accelerator.architecture, accelerator.unified_memory, hardware_of(accelerator)};
}

Result<Target> mig_target_from(const catalog::Accelerator& accelerator, std::string_view profile) {
  std::vector<std::string> names;
  for (const catalog::MigProfile& candidate : accelerator.mig_profiles) {
    if (lower(candidate.name) == lower(profile))
      return Target{fmt::format("{} MIG {}", accelerator.name, candidate.name),
                    candidate.memory,
                    candidate.memory,
                    accelerator.architecture,
                    false,
                    hardware_of(accelerator)};
    names.push_back(candidate.name);
  }
  if (names.empty()) return fail(ErrorCode::unsupported, fmt::format("{} has no MIG profiles", accelerator.name));
  return fail(ErrorCode::not_found, fmt::format("{} has no MIG profile \"{}\"", accelerator.name, profile),
              fmt::format("profiles: {}", fmt::join(names, ", ")));
}

}  // namespace gpuwright::fit
