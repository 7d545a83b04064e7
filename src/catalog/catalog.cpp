#include "catalog/catalog.h"

#include <algorithm>

#include "base/embedded.h"
#include "base/file.h"
#include "catalog/gpus_file.h"

namespace gpuwright::catalog {
namespace {

constexpr std::int64_t kMaxFileBytes = 4 << 20;

bool same_device(const PciId& wanted, const PciId& row) {
  if (wanted.vendor != row.vendor || wanted.device != row.device) return false;
  if (row.subsystem_vendor == 0 && row.subsystem_device == 0) return true;
  return wanted.subsystem_vendor == row.subsystem_vendor && wanted.subsystem_device == row.subsystem_device;
}

bool are_siblings(const Accelerator& a, const Accelerator& b) {
  return !a.chip.empty() && a.chip == b.chip && a.vendor == b.vendor && a.family == b.family &&
         a.memory_type == b.memory_type && a.nominal_memory == b.nominal_memory && !a.unified_memory &&
         !b.unified_memory;
}

// Of several siblings the one with the least counts.
void fill_in_siblings(std::vector<Accelerator>& rows) {
  for (Accelerator& gpu : rows) {
    gpu.sibling_usable_memory.reset();
    gpu.sibling.clear();
    if (gpu.usable_memory) continue;
    for (const Accelerator& other : rows) {
      if (!other.usable_memory || !are_siblings(gpu, other)) continue;
      if (gpu.sibling_usable_memory && *gpu.sibling_usable_memory <= *other.usable_memory) continue;
      gpu.sibling_usable_memory = other.usable_memory;
      gpu.sibling = other.name;
    }
  }
}

}  // namespace

Result<Catalog> Catalog::from_toml(std::string_view text, std::string_view name) {
  Catalog catalog;
  GW_TRY(read_gpus_file(text, name, catalog.accelerators_));
  fill_in_siblings(catalog.accelerators_);
  return catalog;
}

Status Catalog::overlay(std::string_view text, std::string_view name) {
  std::vector<Accelerator> rows = accelerators_;
  GW_TRY(read_gpus_file(text, name, rows));
  fill_in_siblings(rows);
  accelerators_ = std::move(rows);
  return {};
}

Result<Catalog> Catalog::load() {
  const auto builtin = embedded_data("gpus.json");
  if (!builtin) return fail(ErrorCode::internal, "the catalogue of GPUs was not built in");
  Catalog catalog;
  GW_TRY(read_gpus_json(*builtin, "gpus.toml (built in)", catalog.accelerators_));
  fill_in_siblings(catalog.accelerators_);
  const std::string directory = config_directory();
  if (directory.empty()) return catalog;
  const std::string path = directory + "/gpus.toml";
  if (path_exists(path)) GW_TRY(catalog.overlay(GW_TRY(read_file(path, kMaxFileBytes)), path));
  return catalog;
}

std::vector<const Accelerator*> Catalog::all_by_pci_id(PciId id) const {
  std::vector<const Accelerator*> rows;
  for (const Accelerator& gpu : accelerators_)
    if (std::any_of(gpu.pci_ids.begin(), gpu.pci_ids.end(), [&](const PciId& own) { return same_device(id, own); }))
      rows.push_back(&gpu);
  return rows;
}

const Accelerator* Catalog::find_by_pci_id(PciId id) const {
  const auto rows = all_by_pci_id(id);
  return rows.size() == 1 ? rows.front() : nullptr;
}

}  // namespace gpuwright::catalog
