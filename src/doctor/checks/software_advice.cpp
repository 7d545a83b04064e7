#include "doctor/checks/software_advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rules/facts.h"
#include "base/text.h"
#include "doctor/nvidia_driver.h"

namespace gpuwright::doctor {
namespace {

bool serves(const catalog::Compat& compat, const catalog::TorchBuild& build, const std::vector<std::string>& gpus,
            const std::optional<std::string>& driver, bool aarch64) {
  for (const std::string& gpu : gpus)
    if (!compat.runs_on(build, gpu, aarch64).value_or(false)) return false;
  if (!driver) return true;
  const auto floor = compat.driver_floor(build.cuda);
  return floor && compare_versions(*driver, *floor) >= 0;
}

// The newest CUDA that serves; experimental builds only where there is no other.
const catalog::TorchBuild* best_of(const catalog::Compat& compat, const catalog::TorchRelease& release,
                                   const std::vector<std::string>& gpus, const std::optional<std::string>& driver,
                                   bool aarch64) {
  const catalog::TorchBuild* best = nullptr;
  for (const catalog::TorchBuild& build : release.builds) {
    if (!serves(compat, build, gpus, driver, aarch64)) continue;
    const bool better = best == nullptr || (best->experimental && !build.experimental) ||
                        (best->experimental == build.experimental && compare_versions(build.cuda, best->cuda) > 0);
    if (better) best = &build;
  }
  return best;
}

}  // namespace

std::optional<Sm> sm_of(std::string_view capability) {
  const std::size_t dot = capability.find('.');
  if (dot == std::string_view::npos || dot + 2 != capability.size()) return std::nullopt;
  const auto major = to_integer(capability.substr(0, dot)), minor = to_integer(capability.substr(dot + 1));
  if (!major || !minor || *major < 1 || *major > 99) return std::nullopt;
  return static_cast<Sm>(*major * 10 + *minor);
}

std::string capability_of(Sm sm) {
  return fmt::format("{}.{}", sm / 10, sm % 10);
}

std::vector<std::string> nvidia_capabilities(const Machine& machine) {
  std::vector<std::string> capabilities;
  for (const PciGpu* gpu : machine.gpus_of(device::Vendor::nvidia))
    if (sm_of(gpu->compute_capability)) capabilities.push_back(gpu->compute_capability);
  if (capabilities.empty() && machine.snapshot() != nullptr)  // Jetson, WSL
    for (const device::Gpu& gpu : machine.snapshot()->gpus)
      if (gpu.vendor == device::Vendor::nvidia && gpu.compute_capability && sm_of(*gpu.compute_capability))
        capabilities.push_back(*gpu.compute_capability);
  std::sort(capabilities.begin(), capabilities.end(),
            [](const auto& a, const auto& b) { return compare_versions(a, b) < 0; });
  capabilities.erase(std::unique(capabilities.begin(), capabilities.end()), capabilities.end());
  return capabilities;
}

bool has_amd_board(const Machine& machine) {
  const auto gpus = machine.gpus_of(device::Vendor::amd);
  return std::any_of(gpus.begin(), gpus.end(), [&](const PciGpu* gpu) {
    const auto rows = machine.catalog().all_by_pci_id(gpu->id);
    return !rows.empty() && std::none_of(rows.begin(), rows.end(), [](const auto* row) { return row->unified_memory; });
  });
}

std::optional<std::string> driver_for_programs(const Machine& machine) {
  if (machine.surroundings().wsl) return std::nullopt;
  auto installed = machine.nvidia().version();
  const auto library = machine.software().loader().find("libcuda.so.1");
  if (!installed || !library || library->real_path.find("/compat") == std::string::npos) return installed;
  const std::string name = library->real_path.substr(library->real_path.rfind('/') + 1);
  const auto compat = version_in_library_name(name, "libcuda.so.");
  return compat && compare_versions(*compat, *installed) > 0 ? compat : installed;
}

std::optional<TorchAdvice> advised_torch(const Machine& machine, std::string_view current) {
  const catalog::Compat& compat = machine.compat();
  const std::vector<std::string> gpus = nvidia_capabilities(machine);
  if (gpus.empty()) return std::nullopt;
  const bool aarch64 = machine.host().machine().value_or("") == "aarch64";
  const auto driver = driver_for_programs(machine);
  const auto advice = [](const catalog::TorchRelease& release, const catalog::TorchBuild& build) {
    return TorchAdvice{release.newest, build.tag, release.vision.value_or("")};
  };
  if (const auto* same = current.empty() ? nullptr : compat.torch_release(current))
    if (const auto* build = best_of(compat, *same, gpus, driver, aarch64)) return advice(*same, *build);
  for (auto release = compat.torch.rbegin(); release != compat.torch.rend(); ++release)
    if (const auto* build = best_of(compat, *release, gpus, driver, aarch64)) return advice(*release, *build);
  return std::nullopt;
}

void describe(const Machine& machine, const Torch& torch, Problem& problem) {
  problem.version("torch_version", torch.build().version)
      .fact("environment", torch.environment().prefix)
      .fact("python", torch.environment().python())
      .seen(torch.build().folder + "/version.py", torch.build().version);
  if (torch.build().cuda) problem.version("torch_cuda", *torch.build().cuda);
  if (const auto advice = advised_torch(machine, public_version(torch.build().version)))
    problem.version("new_torch", advice->version).fact("new_tag", advice->tag);
}

bool is_release(std::string_view version) {
  return public_version(version).find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace gpuwright::doctor
