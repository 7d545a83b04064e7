// Device nodes, and what the driver says of each GPU.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/checks/names.h"
#include "doctor/checks/rights.h"
#include "doctor/kernel_lines.h"

namespace gpuwright::doctor {
namespace {

using device::Gpu;
using device::Vendor;

std::optional<Outcome> no_question(const Machine& machine) {
  if (!machine.has_nvidia()) return not_applicable("no NVIDIA GPU");
  if (machine.surroundings().wsl) return not_applicable("WSL has /dev/dxg");
  if (machine.surroundings().tegra) return not_applicable("Jetson has other nodes");
  if (!machine.module_loaded("nvidia").value_or(false)) return not_applicable("the kernel module is not loaded");
  return std::nullopt;
}

// The GPUs that the module drives, by /proc/driver/nvidia/gpus/*/information: "Device Minor: 0".
std::vector<std::int64_t> minors(const Host& host) {
  std::vector<std::int64_t> all;
  for (const std::string& address : host.names("/proc/driver/nvidia/gpus", 256)) {
    const auto text = host.text("/proc/driver/nvidia/gpus/" + address + "/information");
    if (!text) continue;
    for (const std::string_view line : split(*text, '\n'))
      if (line.starts_with("Device Minor:"))
        if (const auto minor = to_integer(trim(line.substr(13)))) all.push_back(*minor);
  }
  std::sort(all.begin(), all.end());
  return all;
}

bool has_no_node_at_all(const Host& host) {
  const auto names = host.names("/dev");
  return std::none_of(names.begin(), names.end(), [](const std::string& name) { return name.starts_with("nvidia"); });
}

Outcome check_nodes(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  const Host& host = machine.host();
  if (!host.is_directory("/dev") && host.captured("nodes") == nullptr) return unknown("/dev cannot be listed");
  if (machine.surroundings().in_container() && has_no_node_at_all(host))
    return not_applicable("this container was given no GPU: see ct.inside");
  std::vector<std::string> wanted = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
  if (!machine.surroundings().in_container())
    for (const std::int64_t minor : minors(host)) wanted.push_back(fmt::format("/dev/nvidia{}", minor));
  Outcome outcome = fine();
  for (const std::string& path : wanted) {
    const auto node = host.node(path);
    if (!node)
      outcome.wrong(path == "/dev/nvidia-uvm" ? "dev.uvm" : "dev.nodes").item("nodes", path).seen(path, "is not there");
  }
  add_missing_rights(host, wanted, "dev.rights", outcome);
  return outcome;
}

Outcome check_hmm(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  if (!machine.host().kernel_log()) return unknown("the kernel's log may not be read");
  Outcome outcome = fine();
  if (const auto line = find_in_log(machine.host(), {"devmem_alloc_pagemap", "-34"}))
    outcome.wrong("dev.hmm").evidence.push_back(*line);
  return outcome;
}

// After a suspend the memory that the driver did not save is gone: cuInit gives 999 until nvidia_uvm is loaded anew.
Outcome check_suspend(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  const auto suspended = find_in_log(machine.host(), {"PM: suspend exit"});
  if (!machine.host().kernel_log()) return unknown("the kernel's log may not be read");
  if (!suspended) return fine();
  const auto parameters = machine.host().text("/proc/driver/nvidia/params");
  if (!parameters) return unknown("/proc/driver/nvidia/params cannot be read");
  if (parameters->find("PreserveVideoMemoryAllocations: 1") != std::string::npos) return fine("memory is preserved");
  Outcome outcome;
  outcome.wrong("dev.suspend").evidence.push_back(*suspended);
  return outcome;
}

const device::Snapshot* told(const Machine& machine) {
  return machine.snapshot();
}

template <class Visit>
int for_each_nvidia(const Machine& machine, Visit visit) {
  int count = 0;
  for (const Gpu& gpu : told(machine)->gpus)
    if (gpu.vendor == Vendor::nvidia) {
      ++count;
      visit(gpu);
    }
  return count;
}

Outcome check_lost(const Machine& machine) {
  if (!machine.has_nvidia()) return not_applicable("no NVIDIA GPU");
  if (const auto line = find_in_log(machine.host(), {"has fallen off the bus"})) {
    Outcome outcome;
    outcome.wrong("dev.lost").evidence.push_back(*line);
    return outcome;
  }
  if (told(machine) == nullptr) return unknown("the driver was not asked");
  Outcome outcome = fine();
  for_each_nvidia(machine, [&](const Gpu& gpu) {
    const char* id = gpu.state == device::State::lost           ? "dev.lost"
                     : gpu.state == device::State::needs_reset  ? "dev.reset"
                     : gpu.state == device::State::unresponsive ? "dev.hung"
                                                                : nullptr;
    if (id != nullptr)
      outcome.wrong(id)
          .item("gpus", name_of(gpu))
          .fact("index", gpu.vendor_index)
          .seen("NVML", std::string(to_string(gpu.state)));
  });
  return outcome;
}

// The bus has more GPUs than the driver tells of: one did not come up.
Outcome check_count(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  if (machine.surroundings().in_container()) return not_applicable("a container may be given some of them");
  const auto known = machine.host().names("/proc/driver/nvidia/gpus", 256);
  if (known.empty()) return unknown("/proc/driver/nvidia/gpus cannot be listed");
  Outcome outcome = fine();
  std::int64_t bound = 0;
  for (const PciGpu* gpu : machine.gpus_of(Vendor::nvidia)) {
    if (gpu->driver == "vfio-pci" || gpu->driver == "nouveau") continue;
    ++bound;
    if (std::find(known.begin(), known.end(), gpu->address) != known.end()) continue;
    outcome.wrong("dev.missing")
        .item("gpus", gpu->name)
        .item("addresses", gpu->address)
        .seen("/proc/driver/nvidia/gpus", "has no " + gpu->address);
  }
  if (outcome.state == State::wrong)
    outcome.problems.front().fact("on_bus", bound).fact("known", static_cast<std::int64_t>(known.size()));
  return outcome;
}

Outcome check_persistence(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  if (told(machine) == nullptr) return unknown("the driver was not asked");
  Outcome outcome = fine("on");
  bool known = false;
  for_each_nvidia(machine, [&](const Gpu& gpu) {
    if (!gpu.persistence_mode) return;
    known = true;
    // A display keeps the driver's state as well.
    if (!*gpu.persistence_mode && !gpu.display_active.value_or(false))
      outcome.wrong("dev.persistence").item("gpus", name_of(gpu)).seen("NVML", "persistence mode off");
  });
  return known ? outcome : unknown("the driver does not tell");
}

Outcome check_compute_mode(const Machine& machine) {
  if (!machine.has_nvidia()) return not_applicable("no NVIDIA GPU");
  if (told(machine) == nullptr) return unknown("the driver was not asked");
  Outcome outcome = fine();
  bool known = false;
  for_each_nvidia(machine, [&](const Gpu& gpu) {
    if (!gpu.compute_mode) return;
    known = true;
    if (*gpu.compute_mode == "prohibited")
      outcome.wrong("dev.prohibited")
          .item("gpus", name_of(gpu))
          .fact("index", gpu.vendor_index)
          .seen("NVML", "compute mode prohibited");
    else if (gpu.compute_mode->starts_with("exclusive"))
      outcome.wrong("dev.exclusive")
          .item("gpus", name_of(gpu))
          .fact("index", gpu.vendor_index)
          .seen("NVML", "compute mode " + *gpu.compute_mode);
  });
  return known ? outcome : unknown("the driver does not tell");
}

Outcome check_mig(const Machine& machine) {
  if (!machine.has_nvidia()) return not_applicable("no NVIDIA GPU");
  if (told(machine) == nullptr) return unknown("the driver was not asked");
  Outcome outcome = fine();
  bool on = false;
  for_each_nvidia(machine, [&](const Gpu& gpu) {
    if (!gpu.mig_mode.value_or(false)) return;
    on = true;
    if (gpu.mig_instances.empty())
      outcome.wrong("dev.mig")
          .item("gpus", name_of(gpu))
          .fact("index", gpu.vendor_index)
          .seen("NVML", "MIG mode on, no instance");
  });
  const auto visible = machine.host().variable("CUDA_VISIBLE_DEVICES");
  if (on && outcome.state == State::ok && visible && visible->find_first_not_of("0123456789,") == std::string::npos &&
      !visible->empty())
    outcome.wrong("dev.mig_index").fact("visible", *visible).seen("CUDA_VISIBLE_DEVICES", *visible);
  return on ? outcome : fine("off");
}

}  // namespace

std::vector<Check> node_checks() {
  return {{"dev.lost", Layer::nodes, check_lost},
          {"dev.missing", Layer::nodes, check_count},
          {"dev.nodes", Layer::nodes, check_nodes},
          {"dev.hmm", Layer::nodes, check_hmm},
          {"dev.suspend", Layer::nodes, check_suspend},
          {"dev.mig", Layer::nodes, check_mig},
          {"dev.compute_mode", Layer::nodes, check_compute_mode},
          {"dev.persistence", Layer::nodes, check_persistence, Check::Use::both}};
}

}  // namespace gpuwright::doctor
