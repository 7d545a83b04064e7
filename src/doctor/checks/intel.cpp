// Intel's stack: i915 or xe, the render node, and a compute runtime.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/checks/rights.h"

namespace gpuwright::doctor {
namespace {

using device::Vendor;

// A processor's own graphics counts where there is nothing else to compute on.
std::vector<const PciGpu*> cards(const Machine& machine) {
  auto gpus = machine.gpus_of(Vendor::intel);
  const bool others = !machine.gpus_of(Vendor::nvidia).empty() || !machine.gpus_of(Vendor::amd).empty();
  if (others)
    std::erase_if(gpus,
                  [](const PciGpu* gpu) { return gpu->accelerator == nullptr || gpu->accelerator->unified_memory; });
  return gpus;
}

Outcome check_module(const Machine& machine) {
  const auto gpus = cards(machine);
  if (gpus.empty()) return not_applicable("no Intel GPU");
  Outcome outcome = fine(gpus.front()->driver);
  for (const PciGpu* gpu : gpus)
    if (gpu->driver.empty())
      outcome.wrong("intel.module").item("gpus", gpu->name).seen(gpu->path("driver"), "no driver is bound");
  return outcome;
}

Outcome check_device(const Machine& machine) {
  const auto gpus = cards(machine);
  if (gpus.empty()) return not_applicable("no Intel GPU");
  if (std::none_of(gpus.begin(), gpus.end(),
                   [](const auto* gpu) { return gpu->driver == "i915" || gpu->driver == "xe"; }))
    return not_applicable("neither i915 nor xe is bound");
  const Host& host = machine.host();
  if (!host.is_directory("/dev") && host.captured("nodes") == nullptr) return unknown("/dev cannot be listed");
  Outcome outcome = fine();
  const auto nodes = render_nodes(host);
  if (nodes.empty())
    outcome.wrong(machine.surroundings().in_container() ? "intel.container" : "intel.render")
        .seen("/dev/dri", "no renderD*");
  add_missing_rights(host, nodes, "intel.rights", outcome);
  return outcome;
}

bool has_library(const Machine& machine, std::string_view prefix) {
  for (const std::string& folder : machine.library_folders())
    for (const std::string& name : machine.host().names(folder, 65536))
      if (name.starts_with(prefix)) return true;
  return false;
}

Outcome check_runtime(const Machine& machine) {
  if (cards(machine).empty()) return not_applicable("no Intel GPU");
  const Host& host = machine.host();
  for (const std::string& name : host.names("/etc/OpenCL/vendors"))
    if (name.find("intel") != std::string::npos) return fine("/etc/OpenCL/vendors/" + name);
  if (machine.library_folders().empty()) return unknown("the loader's folders cannot be listed");
  if (has_library(machine, "libze_intel_gpu.so")) return fine("Level Zero");
  Outcome outcome;
  outcome.wrong("intel.runtime").seen("/etc/OpenCL/vendors", "no intel.icd, and no libze_intel_gpu.so");
  return outcome;
}

}  // namespace

std::vector<Check> intel_checks() {
  return {{"intel.module", Layer::kernel_module, check_module},
          {"intel.device", Layer::nodes, check_device},
          {"intel.runtime", Layer::cuda, check_runtime}};
}

}  // namespace gpuwright::doctor
