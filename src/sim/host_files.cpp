// The files of a simulated kernel that tell of GPUs what NVIDIA's library does not.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "sim/gpu_view.h"
#include "sim/host.h"
#include "sim/host_state.h"

namespace gpuwright::sim {
namespace {

constexpr std::string_view kDevices = "/sys/bus/pci/devices";

// "0000:1b:00.0", as the kernel writes it
std::string address_of(const GpuSpec& gpu) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", gpu.pci_domain, gpu.pci_bus, gpu.pci_device);
}

bool driver_is_loaded(const Host::State& host, double time) {
  return std::none_of(host.scenario.faults.begin(), host.scenario.faults.end(), [time](const Fault& fault) {
    return fault.kind == FaultKind::not_loaded && fault.interval.holds(time);
  });
}

std::string meminfo(const Host::State& host, double time) {
  std::int64_t used = host.scenario.memory_used;
  for (std::size_t i = 0; i < host.scenario.gpus.size(); ++i) {
    const GpuView gpu(host, static_cast<int>(i), -1, time);
    if (gpu.spec().unified_memory()) used += gpu.memory_used();
  }
  const std::int64_t total = host.scenario.memory_total;
  const std::int64_t available = std::max<std::int64_t>(0, total - used);
  return fmt::format("MemTotal:       {:>8} kB\nMemFree:        {:>8} kB\nMemAvailable:   {:>8} kB\n", total / 1024,
                     available / 2 / 1024, available / 1024);
}

std::optional<std::string> device_file(const GpuView& gpu, std::string_view name) {
  const GpuSpec& spec = gpu.spec();
  if (name == "vendor") return "0x10de\n";
  if (name == "device" && !spec.facts->pci_ids.empty()) return fmt::format("0x{:04x}\n", spec.facts->pci_ids[0].device);
  if (name == "class") return spec.display ? "0x030000\n" : "0x030200\n";
  if (name == "numa_node") return fmt::format("{}\n", gpu.scenario().numa_nodes > 1 ? spec.numa_node : -1);
  if (name == "power/runtime_status") {
    bool asleep = false;
    gpu.for_each_fault(FaultKind::asleep, [&asleep](const Fault&) { asleep = true; });
    return asleep ? "suspended\n" : "active\n";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Host::file(std::string_view path) const {
  const double now = state_->now();
  const Scenario& scenario = state_->scenario;
  if (path == "/proc/meminfo") return meminfo(*state_, now);
  if (path == "/proc/driver/nvidia/version" && driver_is_loaded(*state_, now))
    return fmt::format("NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Mon Jan  1 00:00:00 UTC 2024\n",
                       scenario.driver.version);
  if (!path.starts_with(kDevices)) return std::nullopt;
  const std::string_view rest = path.substr(std::min(path.size(), kDevices.size() + 1));
  for (std::size_t i = 0; i < scenario.gpus.size(); ++i) {
    const std::string address = address_of(scenario.gpus[i]);
    if (!rest.starts_with(address) || rest.size() <= address.size() + 1) continue;
    return device_file(GpuView(*state_, static_cast<int>(i), -1, now), rest.substr(address.size() + 1));
  }
  return std::nullopt;
}

std::vector<std::string> Host::files_in(std::string_view path) const {
  std::vector<std::string> names;
  if (path != kDevices) return names;
  for (const GpuSpec& gpu : state_->scenario.gpus) names.push_back(address_of(gpu));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace gpuwright::sim
