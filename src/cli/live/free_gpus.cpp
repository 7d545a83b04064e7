#include "cli/live/free_gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/live/processes.h"
#include "cli/live/values.h"

namespace gpuwright::cli {
namespace {

using device::Gpu;
using device::Process;
using device::Snapshot;

constexpr double kNearlyAll = 0.95;

// What the driver or the machine keeps for itself is nobody's to give.
Bytes to_be_had(const Gpu& gpu) {
  return *gpu.memory_total - gpu.memory_reserved.value_or(Bytes{});
}

std::string obstacle_in_memory(const Gpu& gpu, const FreeRules& rules) {
  if (!gpu.memory_free || !gpu.memory_total)
    return fmt::format("its free memory is not known ({})", to_string(gpu.memory_free.why()));
  const Bytes needed = rules.memory.value_or(to_be_had(gpu).scaled(kNearlyAll));
  // Of unified memory the machine itself always holds a part.
  if (!rules.memory && gpu.unified_memory) return {};
  if (*gpu.memory_free >= needed) return {};
  return fmt::format("{} of memory free, {} wanted", memory_text(*gpu.memory_free), memory_text(needed));
}

std::string obstacle_in_processes(const Snapshot& snapshot, const Gpu& gpu, const FreeRules& rules) {
  if (rules.memory && !rules.exclusive) return {};
  for (const Process& process : snapshot.processes) {
    if (process.gpu != gpu.index || (process.kind & ~device::process_kind::kGraphics) == 0) continue;
    const bool own = process.user && *process.user == rules.user;
    if (rules.memory && own) continue;
    return fmt::format("process {} of {} is on it", process.pid_here.value_or(process.pid),
                       process.user.value_or("an unknown user"));
  }
  return {};
}

std::string obstacle_of(const Snapshot& snapshot, const Gpu& gpu, const FreeRules& rules) {
  if (gpu.state != device::State::ok && gpu.state != device::State::asleep) return std::string(to_string(gpu.state));
  if (gpu.recovery_action && !gpu.recovery_action->empty() && *gpu.recovery_action != "none")
    return "the driver asks to " + *gpu.recovery_action;
  if (gpu.mig_mode.value_or(false)) return "cut into MIG instances";
  if (gpu.compute_mode && *gpu.compute_mode == "prohibited") return "its compute mode is prohibited";
  std::string obstacle = obstacle_in_processes(snapshot, gpu, rules);
  // Nobody uses a GPU that sleeps, and its values cannot be asked for.
  if (!obstacle.empty() || gpu.state == device::State::asleep) return obstacle;
  if (gpu.utilization && gpu.utilization->value > rules.utilization)
    return fmt::format("{:.0f}% utilised", gpu.utilization->value * 100);
  return obstacle_in_memory(gpu, rules);
}

bool is_better(const Gpu* a, const Gpu* b) {
  const auto memory = [](const Gpu* gpu) { return gpu->memory_free.value_or(Bytes{}).count >> 28; };  // 256 MiB
  const auto use = [](const Gpu* gpu) { return gpu->utilization.value_or(Ratio{}).value; };
  if (memory(a) != memory(b)) return memory(a) > memory(b);
  if (use(a) != use(b)) return use(a) < use(b);
  return a->index < b->index;
}

}  // namespace

std::vector<Judged> judge(const Snapshot& snapshot, const FreeRules& rules) {
  std::vector<Judged> judged;
  for (const Gpu& gpu : snapshot.gpus) judged.push_back({&gpu, obstacle_of(snapshot, gpu, rules)});
  return judged;
}

std::vector<const Gpu*> choose(const std::vector<Judged>& judged, std::optional<std::size_t> count) {
  std::vector<const Gpu*> best;
  for (const device::Vendor vendor : {device::Vendor::nvidia, device::Vendor::amd, device::Vendor::intel,
                                      device::Vendor::huawei, device::Vendor::unknown}) {
    std::vector<const Gpu*> free;
    for (const Judged& one : judged)
      if (one.obstacle.empty() && one.gpu->vendor == vendor) free.push_back(one.gpu);
    std::sort(free.begin(), free.end(), is_better);
    if (count && free.size() > *count) free.resize(*count);
    if (free.size() > best.size()) best = std::move(free);
  }
  std::sort(best.begin(), best.end(), [](const Gpu* a, const Gpu* b) { return a->index < b->index; });
  return best;
}

namespace {

// HIP and Level Zero count the GPUs that they can use from 0, in the order of the bus; the numbers of DRM's cards have
// holes where a display adapter or another vendor's card stands.
int number_for_runtime(const Snapshot& snapshot, const Gpu& gpu) {
  if (gpu.vendor != device::Vendor::amd && gpu.vendor != device::Vendor::intel) return gpu.vendor_index;
  return static_cast<int>(std::count_if(snapshot.gpus.begin(), snapshot.gpus.end(), [&gpu](const Gpu& other) {
    if (other.vendor != gpu.vendor || other.state == device::State::no_driver) return false;
    if (other.pci_address && gpu.pci_address) return *other.pci_address < *gpu.pci_address;
    return other.vendor_index < gpu.vendor_index;
  }));
}

}  // namespace

std::string visible_devices(const Snapshot& snapshot, const std::vector<const Gpu*>& gpus, bool by_uuid) {
  if (gpus.empty()) return {};
  std::vector<std::string> names;
  for (const Gpu* gpu : gpus)
    names.push_back(by_uuid && gpu->uuid ? *gpu->uuid : fmt::format("{}", number_for_runtime(snapshot, *gpu)));
  const std::string list = fmt::format("{}", fmt::join(names, ","));
  switch (gpus.front()->vendor) {
    case device::Vendor::amd:
      return "HIP_VISIBLE_DEVICES=" + list;
    case device::Vendor::intel:
      return "ZE_AFFINITY_MASK=" + list;
    case device::Vendor::huawei:
      return "ASCEND_RT_VISIBLE_DEVICES=" + list;
    default:
      return (by_uuid ? "" : "CUDA_DEVICE_ORDER=PCI_BUS_ID ") + ("CUDA_VISIBLE_DEVICES=" + list);
  }
}

}  // namespace gpuwright::cli
