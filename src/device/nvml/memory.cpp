// Memory of a GPU: its own, or the machine's where the chip has none (DGX Spark, Jetson).
#include <algorithm>
#include <string_view>

#include "catalog/catalog.h"
#include "device/nvml/card.h"
#include "device/sysfs/drm_card.h"

namespace gpuwright::device::nvidia {
namespace {

// Only a known chip counts as one without memory: a lost GPU, a mismatch or a MIG slice may also answer NOT_SUPPORTED.
bool is_known_as_unified(const Gpu& gpu) {
  if (!gpu.name) return false;
  // Jetson and DRIVE modules have no PCI id, and their drivers name the family only: "Orin (nvgpu)", "NVIDIA Thor".
  for (const std::string_view family : {"Xavier", "Orin", "Thor"})
    if (gpu.name->find(family) != std::string::npos) return true;
  const catalog::Catalog* catalog = known_gpus();
  if (catalog == nullptr) return false;
  const std::string& name = *gpu.name;
  return std::any_of(
      catalog->accelerators().begin(), catalog->accelerators().end(), [&name](const catalog::Accelerator& row) {
        return row.unified_memory && row.vendor == "NVIDIA" &&
               (row.name == name || std::find(row.aliases.begin(), row.aliases.end(), name) != row.aliases.end());
      });
}

void missing(Gpu& gpu, Why why) {
  gpu.memory_total = gpu.memory_used = gpu.memory_reserved = gpu.memory_free = why;
}

}  // namespace

MemoryReadings read_memory_of(Asker& ask, nvml::Device device) {
  const Functions& f = ask.functions();
  nvml::MemoryV2 memory{};
  memory.version = nvml::version_of<nvml::MemoryV2>(2);
  nvml::Return code = ask(f.nvmlDeviceGetMemoryInfo_v2, device, &memory);
  const bool has_reserved = code == nvml::kSuccess;
  if (try_the_older(code)) {
    nvml::Memory older{};
    code = ask(f.nvmlDeviceGetMemoryInfo, device, &older);
    memory = {memory.version, older.total, 0, older.free, older.used};
  }
  if (code == nvml::kSuccess && memory.total == 0) code = nvml::kNotSupported;
  MemoryReadings readings{code, why_of(code), why_of(code), why_of(code), why_of(code)};
  if (code != nvml::kSuccess) return readings;
  readings.total = byte_count(code, memory.total);
  if (!readings.total || memory.free > memory.total || memory.used > memory.total || memory.reserved > memory.total)
    return {code, Why::implausible, Why::implausible, Why::implausible, Why::implausible};
  readings.used = byte_count(code, memory.used);
  readings.free = byte_count(code, memory.free);
  readings.reserved = has_reserved ? byte_count(code, memory.reserved) : Reading<Bytes>(Why::not_supported);
  return readings;
}

nvml::Return read_memory(Card& card, CardAsker& ask) {
  Gpu& gpu = card.row;
  if (card.integrated) {
    // Its driver has been asked once; the row is filled in when the processes are known.
    missing(gpu, Why::unified_memory);
    return nvml::kSuccess;
  }
  const MemoryReadings memory = read_memory_of(ask.plain(), card.handle);
  if (memory.code == nvml::kNotSupported && !card.mig_on && is_known_as_unified(gpu)) {
    card.integrated = card.facts.unified_memory = gpu.unified_memory = true;
    missing(gpu, Why::unified_memory);
    return nvml::kSuccess;
  }
  gpu.memory_total = memory.total;
  gpu.memory_used = memory.used;
  gpu.memory_reserved = memory.reserved;
  gpu.memory_free = memory.free;
  return memory.code;
}

void tell_unified_memory(Card& card, const HostFiles& files, nvml::Return listed,
                         const std::vector<Process>& processes) {
  if (!card.integrated) return;
  Gpu& gpu = card.row;
  // Such chips tell a link of one lane of the first generation (Syllo/nvtop#426), which is none.
  gpu.pcie_generation = gpu.pcie_generation_max = gpu.pcie_width = gpu.pcie_width_max = Why::unified_memory;
  gpu.pcie_sent = gpu.pcie_received = Why::unified_memory;
  gpu.bar1_total = gpu.bar1_used = Why::unified_memory;
  Reading<Bytes> held = listed == nvml::kSuccess ? Reading<Bytes>(Bytes{0}) : Reading<Bytes>(why_of(listed));
  for (const Process& process : processes)
    held = held && process.memory ? Reading<Bytes>(*held + *process.memory) : Reading<Bytes>(Why::no_data);
  gpu.memory_used = held;
  const HostMemory host = files.memory();
  if (!host.total || !host.available || *host.available > *host.total) {
    gpu.memory_total = gpu.memory_free = gpu.host_used = Why::no_data;
    return;
  }
  gpu.memory_total = *host.total;
  gpu.memory_free = *host.available;
  gpu.host_used = held ? Reading<Bytes>(std::max(Bytes{0}, *host.total - *host.available - *held)) : held;
}

}  // namespace gpuwright::device::nvidia
