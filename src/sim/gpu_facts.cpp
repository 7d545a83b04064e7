#include "sim/gpu_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.h"
#include "catalog/catalog.h"

namespace gpuwright::sim {
namespace {

const Result<catalog::Catalog>& shared_catalog() {
  static const Result<catalog::Catalog> kCatalog = catalog::Catalog::load();
  return kCatalog;
}

// The catalogue has the driver's name among the aliases of boards whose trade name differs from it.
std::string driver_name(const catalog::Accelerator& facts) {
  for (const std::string& alias : facts.aliases)
    if (starts_with_ignoring_case(alias, "NVIDIA ") || starts_with_ignoring_case(alias, "Tesla ")) return alias;
  if (starts_with_ignoring_case(facts.name, "Tesla ")) return facts.name;
  return "NVIDIA " + facts.name;
}

// "5x16"
void set_pcie(const std::string& text, GpuSpec& spec) {
  const std::size_t at = text.find('x');
  if (at == std::string::npos) return;
  const auto generation = to_integer(std::string_view(text).substr(0, at));
  const auto width = to_integer(std::string_view(text).substr(at + 1));
  if (!generation || !width) return;
  spec.pcie_generation_max = static_cast<int>(std::clamp<std::int64_t>(*generation, 1, 7));
  spec.pcie_width_max = static_cast<int>(std::clamp<std::int64_t>(*width, 1, 16));
}

void set_compute_capability(const std::string& text, GpuSpec& spec) {
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos) return;
  spec.compute_major = static_cast<int>(to_integer(std::string_view(text).substr(0, dot)).value_or(0));
  spec.compute_minor = static_cast<int>(to_integer(std::string_view(text).substr(dot + 1)).value_or(0));
}

// Both directions of a link together: 50 GB/s since Volta, 100 from Blackwell on, 28.1 on GeForce.
int links_of(const catalog::Accelerator& facts) {
  const double total = facts.nvlink_gb_per_second.value_or(0);
  const double link = facts.architecture == "Blackwell" ? 100 : facts.family == "datacenter" ? 50 : 28.125;
  return std::min(18, static_cast<int>(std::lround(total / link)));
}

void set_memory(const catalog::Accelerator& facts, GpuSpec& spec) {
  spec.memory_total = facts.nominal_memory.count;
  spec.memory_reserved = std::max<std::int64_t>(0, (facts.nominal_memory - facts.usable()).count);
  spec.bar1_total = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(spec.memory_total)));
  spec.bar1_used = 4 << 20;
  if (!facts.unified_memory) return;
  spec.memory_answer = MemoryAnswer::not_supported;
  spec.memory_total = facts.usable().count;
  spec.memory_reserved = 0;
}

void set_power(const catalog::Accelerator& facts, GpuSpec& spec) {
  if (!facts.board_power) return;
  const double watts = facts.board_power->value / std::max(1, facts.devices_per_board);
  spec.idle_watts = std::round(watts * 0.1);
  spec.busy_watts = std::round(watts * 0.95);
  if (facts.unified_memory) return;
  spec.power_limit = spec.power_default = spec.power_max = watts;
}

}  // namespace

std::uint64_t stable_number(std::string_view text, std::uint64_t salt) {
  std::uint64_t hash = 0xcbf29ce484222325 ^ salt;  // FNV-1a, then the finish of splitmix64
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
  return hash ^ hash >> 31;
}

std::string stable_uuid(std::string_view prefix, std::string_view text, std::uint64_t salt) {
  const std::uint64_t high = stable_number(text, salt), low = stable_number(text, ~salt);
  return fmt::format("{}{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", prefix, high >> 32, high >> 16 & 0xffff, high & 0xffff,
                     low >> 48, low & 0xffff'ffff'ffff);
}

Result<GpuSpec> spec_from_catalog(const std::string& id) {
  const auto& catalog = shared_catalog();
  if (!catalog) return tl::unexpected<Error>(catalog.error());
  const catalog::Accelerator& facts = *GW_TRY(catalog->find(id));
  if (facts.vendor != "NVIDIA" || !facts.compute_capability)
    return fail(ErrorCode::unsupported, fmt::format("\"{}\" cannot be simulated", id),
                "only NVIDIA's GPUs can: what is simulated is NVIDIA's library");
  GpuSpec spec;
  spec.facts = std::make_shared<catalog::Accelerator>(facts);
  spec.name = driver_name(facts);
  set_compute_capability(*facts.compute_capability, spec);
  set_memory(facts, spec);
  set_power(facts, spec);
  set_pcie(facts.pcie, spec);
  if (facts.boost_mhz) {
    spec.graphics_clock.max_mhz = static_cast<int>(*facts.boost_mhz);
    spec.graphics_clock.idle_mhz = 210;
  }
  const bool datacenter = facts.family == "datacenter";
  spec.fans = datacenter || facts.unified_memory ? 0 : 1;
  if (datacenter || facts.family == "workstation") spec.ecc = datacenter;
  if (facts.unified_memory) spec.ecc.reset();
  spec.row_remapping = spec.ecc.has_value() && spec.compute_major >= 8;
  spec.memory_temperature = facts.memory_type.find("HBM") != std::string::npos;
  spec.nvlinks = links_of(facts);
  if (spec.nvlinks > 0 && starts_with_ignoring_case(facts.form_factor, "SXM")) spec.nvlink = NvlinkShape::nvswitch;
  return spec;
}

}  // namespace gpuwright::sim
