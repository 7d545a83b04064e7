// AMD's stack: the kernel driver, the nodes and the right to use them.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/checks/rights.h"

namespace gpuwright::doctor {
namespace {

using device::Vendor;

// A processor's own graphics beside a card is not what people compute on.
std::vector<const PciGpu*> cards(const Machine& machine) {
  auto gpus = machine.gpus_of(Vendor::amd);
  if (machine.gpus_of(Vendor::nvidia).empty()) return gpus;
  std::erase_if(gpus, [](const PciGpu* gpu) {
    return gpu->accelerator == nullptr || gpu->accelerator->family == "apu" || gpu->accelerator->unified_memory;
  });
  return gpus;
}

Outcome check_module(const Machine& machine) {
  const auto gpus = cards(machine);
  if (gpus.empty()) return not_applicable("no AMD GPU");
  Outcome outcome = fine("amdgpu");
  const auto line = machine.host().value("/proc/cmdline");
  for (const PciGpu* gpu : gpus) {
    if (gpu->driver == "amdgpu" || gpu->driver == "vfio-pci") continue;
    if (gpu->driver == "radeon") {
      outcome.wrong("amd.radeon").item("gpus", gpu->name).seen(gpu->path("driver"), "-> radeon");
    } else if (line && (" " + *line + " ").find(" nomodeset ") != std::string::npos) {
      outcome.wrong("amd.nomodeset").item("gpus", gpu->name).seen("/proc/cmdline", *line);
    } else {
      outcome.wrong("amd.module").item("gpus", gpu->name).seen(gpu->path("driver"), "no driver is bound");
    }
  }
  return outcome;
}

Outcome check_device(const Machine& machine) {
  const auto gpus = cards(machine);
  if (gpus.empty()) return not_applicable("no AMD GPU");
  if (std::none_of(gpus.begin(), gpus.end(), [](const PciGpu* gpu) { return gpu->driver == "amdgpu"; }))
    return not_applicable("amdgpu is not bound");
  const Host& host = machine.host();
  if (!host.is_directory("/dev") && host.captured("nodes") == nullptr) return unknown("/dev cannot be listed");
  const auto kfd = host.node("/dev/kfd");
  Outcome outcome = fine();
  if (!kfd) {
    outcome.wrong(machine.surroundings().in_container() ? "amd.container" : "amd.kfd").seen("/dev/kfd", "is not there");
    return outcome;
  }
  add_missing_rights(host, {"/dev/kfd"}, "amd.rights", outcome);
  add_missing_rights(host, render_nodes(host), "amd.rights", outcome);
  return outcome;
}

// "gfx_target_version 110002" is gfx1102: major * 10000 + minor * 100 + stepping, the last two as hexadecimal digits
// (Linux, include/uapi/linux/kfd_sysfs.h and ROCT-Thunk-Interface).
std::optional<std::string> gfx_name(std::int64_t version) {
  if (version <= 0) return std::nullopt;
  return fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
}

std::vector<std::string> gfx_of_machine(const Host& host) {
  std::vector<std::string> names;
  const std::string folder = "/sys/class/kfd/kfd/topology/nodes";
  for (const std::string& node : host.names(folder, 256)) {
    const auto text = host.text(folder + "/" + node + "/properties");
    if (!text) continue;
    for (const std::string_view line : split(*text, '\n'))
      if (line.starts_with("gfx_target_version "))
        if (auto name = gfx_name(to_integer(trim(line.substr(19))).value_or(0))) names.push_back(*name);
  }
  return names;
}

Outcome check_target(const Machine& machine) {
  if (cards(machine).empty()) return not_applicable("no AMD GPU");
  const auto targets = gfx_of_machine(machine.host());
  if (targets.empty()) return unknown("the kernel does not tell the GPU's target");
  Outcome outcome = fine(fmt::format("{}", fmt::join(targets, ", ")));
  if (machine.host().variable("HSA_OVERRIDE_GFX_VERSION")) return outcome;
  for (const std::string& gfx : targets) {
    const catalog::AmdTarget* target = machine.compat().amd_target(gfx);
    if (target != nullptr && target->rocm) continue;
    const std::string neighbour = target != nullptr ? target->override_version.value_or("") : "";
    outcome.wrong(neighbour.empty() ? "amd.gfx_none" : "amd.gfx")
        .item("targets", gfx)
        .fact("override", neighbour)
        .seen("/sys/class/kfd/kfd/topology/nodes", gfx);
  }
  return outcome;
}

// Of an APU the firmware sets a part of the RAM apart; the rest is mapped up to a limit of the kernel.
Outcome check_apu(const Machine& machine) {
  if (machine.snapshot() == nullptr) return unknown("the driver was not asked");
  Outcome outcome = not_applicable("no APU");
  constexpr std::int64_t kLittle = std::int64_t{2} << 30;
  for (const device::Gpu& gpu : machine.snapshot()->gpus) {
    if (gpu.vendor != Vendor::amd || !gpu.unified_memory || !gpu.vram_total || !gpu.gtt_total) continue;
    if (outcome.state == State::not_applicable) outcome = fine();
    if (gpu.vram_total->count + gpu.gtt_total->count < 4 * kLittle)
      outcome.wrong("amd.apu")
          .fact("vram_bytes", *gpu.vram_total)
          .fact("gtt_bytes", *gpu.gtt_total)
          .seen("mem_info_gtt_total", to_string(*gpu.gtt_total));
  }
  return outcome;
}

}  // namespace

std::vector<Check> amd_checks() {
  return {{"amd.module", Layer::kernel_module, check_module},
          {"amd.device", Layer::nodes, check_device},
          {"amd.gfx", Layer::framework, check_target},
          {"amd.apu", Layer::system, check_apu}};
}

}  // namespace gpuwright::doctor
