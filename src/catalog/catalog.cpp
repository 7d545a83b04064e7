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

}  // namespace

Result<Catalog> Catalog::from_toml(std::string_view text, std::string_view name) {
  Catalog catalog;
  GW_TRY(read_gpus_file(text, name, catalog.accelerators_));
  return catalog;
}

Status Catalog::overlay(std::string_view text, std::string_view name) {
  std::vector<Accelerator> rows = accelerators_;
  GW_TRY(read_gpus_file(text, name, rows));
  accelerators_ = std::move(rows);
  return {};
}

Result<Catalog> Catalog::load() {
  const auto builtin = embedded_data("gpus.json");
  if (!builtin) return fail(ErrorCode::internal, "the catalogue of GPUs was not built in");
  Catalog catalog;
  GW_TRY(read_gpus_json(*builtin, "gpus.toml (built in)", catalog.accelerators_));
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
