// --measure and --gpu here: live devices as targets.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/fit_log.h"
#include "device/memory.h"

namespace gpuwright::cli {
namespace {

const catalog::Accelerator* row_of(const device::GpuMemory& gpu, const catalog::Catalog& catalog) {
  if (gpu.pci_vendor && gpu.pci_device) return catalog.find_by_pci_id({*gpu.pci_vendor, *gpu.pci_device, 0, 0});
  const auto found = catalog.find(gpu.name);
  return found ? *found : nullptr;
}

}  // namespace

Result<std::vector<fit::Target>> targets_here(const catalog::Catalog& catalog) {
  const device::Present present = device::read_gpu_memory();
  if (present.gpus.empty())
    return fail(ErrorCode::unavailable, "no GPU of this machine tells its memory",
                fmt::format("looked at {}", fmt::join(present.looked_at, "; ")));
  std::vector<fit::Target> targets;
  for (const device::GpuMemory& gpu : present.gpus) {
    const catalog::Accelerator* row = row_of(gpu, catalog);
    targets.push_back({row == nullptr ? gpu.name : row->name, gpu.total, gpu.free,
                       row == nullptr ? std::string() : row->architecture, row != nullptr && row->unified_memory});
  }
  return targets;
}

}  // namespace gpuwright::cli
