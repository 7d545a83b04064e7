// A GpuSpec with what the catalogue knows of the device, before the scenario has its say.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sim/scenario.h"

namespace gpuwright::sim {

Result<GpuSpec> spec_from_catalog(const std::string& id);

// A number that depends on its two arguments alone: for serials, UUIDs and the like, the same in each run.
std::uint64_t stable_number(std::string_view text, std::uint64_t salt);
std::string stable_uuid(std::string_view prefix, std::string_view text, std::uint64_t salt);  // "GPU-..."

}  // namespace gpuwright::sim
