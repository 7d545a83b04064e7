// fw.torch, fw.pair, fw.wheels: whether the PyTorch that is installed is one for these GPUs, and what belongs to it.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/software_advice.h"

namespace gpuwright::doctor {
namespace {

constexpr std::size_t kMostMetadata = 256 << 10;

enum class Serves : std::uint8_t { yes, no, unknown };

// By the code in its libraries; where they cannot be read, by the table of releases.
Serves serves(const Machine& machine, const Torch& torch, const std::string& capability) {
  if (torch.gpu_code())
    return torch.gpu_code()->coverage(*sm_of(capability)) == Coverage::none ? Serves::no : Serves::yes;
  const catalog::Compat& compat = machine.compat();
  const auto* release =
      is_release(torch.build().version) ? compat.torch_release(public_version(torch.build().version)) : nullptr;
  if (release == nullptr) return Serves::unknown;
  for (const catalog::TorchBuild& build : release->builds) {
    if (build.cuda != catalog::version_prefix(*torch.build().cuda, 2)) continue;
    const auto runs = compat.runs_on(build, capability, machine.host().machine().value_or("") == "aarch64");
    if (runs) return *runs ? Serves::yes : Serves::no;
  }
  return Serves::unknown;
}

void list_code(const Machine& machine, const Torch& torch, Problem& problem) {
  if (torch.gpu_code()) {
    for (const GpuCode code : torch.gpu_code()->usual()) problem.item("torch_archs", to_string(code));
    return;
  }
  const auto* release = machine.compat().torch_release(public_version(torch.build().version));
  const auto* build = release == nullptr ? nullptr : release->build(torch.build().tag());
  if (build == nullptr) return;
  for (const std::string& arch : build->archs)
    if (const auto sm = sm_of(arch)) problem.item("torch_archs", fmt::format("sm_{}", *sm));
}

void check_cuda_build(const Machine& machine, const Torch& torch, Outcome& outcome) {
  const auto gpus = machine.gpus_of(device::Vendor::nvidia);
  std::size_t without = 0, told = 0;
  for (const PciGpu* gpu : gpus) {
    if (!sm_of(gpu->compute_capability)) continue;
    const Serves answer = serves(machine, torch, gpu->compute_capability);
    told += answer == Serves::unknown ? 0 : 1;
    without += answer == Serves::no ? 1 : 0;
  }
  if (without == 0) return;
  Problem& problem = outcome.wrong(without == told ? "fw.torch.arch" : "fw.torch.arch.some");
  describe(machine, torch, problem);
  list_code(machine, torch, problem);
  for (const PciGpu* gpu : gpus) {
    const auto sm = sm_of(gpu->compute_capability);
    if (!sm || serves(machine, torch, gpu->compute_capability) != Serves::no) continue;
    problem.item("gpu", gpu->name).item("gpu_arch", fmt::format("sm_{}", *sm));
    problem.seen(gpu->address, fmt::format("{}, sm_{}", gpu->name, *sm));
  }
}

void check_build(const Machine& machine, const Torch& torch, Outcome& outcome) {
  const bool nvidia = machine.has_nvidia(), amd = has_amd_board(machine);
  const TorchBuild& build = torch.build();
  const char* wrong = nullptr;
  if (!build.for_gpus()) {
    wrong = nvidia ? "fw.torch.cpu" : amd ? "fw.torch.cpu.amd" : nullptr;
  } else if (build.hip && nvidia && !amd) {
    wrong = "fw.torch.rocm";
  } else if (build.cuda && !nvidia && amd) {
    wrong = "fw.torch.cuda";
  }
  if (wrong != nullptr) {
    Problem& problem = outcome.wrong(wrong);
    describe(machine, torch, problem);
    const auto* release = machine.compat().torch_release(public_version(build.version));
    if (release == nullptr && !machine.compat().torch.empty()) release = &machine.compat().torch.back();
    if (release != nullptr && release->rocm) problem.fact("rocm_tag", "rocm" + *release->rocm);
  } else if (build.cuda && nvidia) {
    check_cuda_build(machine, torch, outcome);
  }
}

// Those that load PyTorch's libraries and are made for one release of it; fatal: cannot be imported with another.
struct Companion {
  const char* name;
  bool fatal;
};
constexpr Companion kCompanions[] = {{"torchvision", true}, {"torchaudio", true}, {"torchtext", true},
                                     {"xformers", false},   {"vllm", false},      {"fbgemm-gpu", false}};

std::optional<std::string> wanted_torch(const Machine& machine, const Package& companion) {
  const auto metadata = machine.host().text(companion.folder + "/METADATA", kMostMetadata);
  if (metadata)
    for (const Requirement& requirement : requirements_in(*metadata))
      if (requirement.name == "torch" && !requirement.optional && requirement.pin()) return requirement.pin();
  if (!is_release(companion.version)) return std::nullopt;
  const std::string series(minor_version(companion.version));
  for (const catalog::TorchRelease& release : machine.compat().torch) {
    const auto& known = companion.name == "torchvision" ? release.vision : release.audio;
    const bool of_pair = companion.name == "torchvision" || companion.name == "torchaudio";
    if (of_pair && known && *known == series) return release.version;
  }
  return std::nullopt;
}

void compare_companion(const Machine& machine, const Torch& torch, const Companion& companion, Outcome& outcome) {
  const Package* package = torch.environment().find(companion.name);
  if (package == nullptr || !is_release(torch.build().version)) return;
  const std::string_view tag = torch.build().tag(), own_tag = local_tag(package->version);
  const auto wanted = wanted_torch(machine, *package);
  const bool other_release = wanted && minor_version(*wanted) != minor_version(torch.build().version);
  const bool other_tag = !tag.empty() && !own_tag.empty() && tag != own_tag;
  if (!other_release && !other_tag) return;
  Problem& problem = outcome.wrong(!companion.fatal ? "fw.pair.pinned" : other_release ? "fw.pair" : "fw.pair.tag");
  describe(machine, torch, problem);
  problem.item("package", package->name).item("package_version", package->version);
  if (other_release) problem.item("wanted_torch", *wanted);
  const auto* release = machine.compat().torch_release(public_version(torch.build().version));
  if (release != nullptr && release->vision) problem.fact("wanted_vision", *release->vision);
  problem.fact("tag", tag).seen(package->folder, package->version);
}

void compare_wheels(const Machine& machine, const Torch& torch, Outcome& outcome) {
  const Package* own = torch.environment().find("torch");
  const auto metadata = own == nullptr ? std::nullopt : machine.host().text(own->folder + "/METADATA", kMostMetadata);
  if (!metadata) return;
  for (const Requirement& requirement : requirements_in(*metadata)) {
    if (requirement.optional || !requirement.name.starts_with("nvidia-") || !requirement.pin()) continue;
    const Package* wheel = torch.environment().find(requirement.name);
    if (wheel != nullptr && meets(wheel->version, requirement.specifier).value_or(true)) continue;
    Problem& problem = outcome.wrong(wheel == nullptr ? "fw.wheels.missing" : "fw.wheels");
    describe(machine, torch, problem);
    const std::string needed = fmt::format("{}=={}", requirement.name, *requirement.pin());
    problem.item("wheel", needed);
    if (wheel != nullptr) problem.item("wheel_there", fmt::format("{}=={}", wheel->name, wheel->version));
    problem.seen(own->folder + "/METADATA", "Requires-Dist: " + needed);
  }
}

}  // namespace

Outcome check_fw_torch(const Machine& machine) {
  const auto& torches = machine.software().torches();
  if (torches.empty()) return not_applicable("no PyTorch is installed");
  if (!machine.pci_gpus() && !machine.has_nvidia()) return unknown("the GPUs are not known");
  Outcome outcome =
      fine(fmt::format("torch {} in {}", torches.front().build().version, torches.front().environment().prefix));
  for (const Torch& torch : torches) check_build(machine, torch, outcome);
  return outcome;
}

Outcome check_fw_pair(const Machine& machine) {
  const auto& torches = machine.software().torches();
  if (torches.empty()) return not_applicable("no PyTorch is installed");
  Outcome outcome = fine();
  for (const Torch& torch : torches)
    for (const Companion& companion : kCompanions) compare_companion(machine, torch, companion, outcome);
  return outcome;
}

Outcome check_fw_wheels(const Machine& machine) {
  const auto& torches = machine.software().torches();
  if (torches.empty()) return not_applicable("no PyTorch is installed");
  Outcome outcome = fine();
  for (const Torch& torch : torches) compare_wheels(machine, torch, outcome);
  return outcome;
}

}  // namespace gpuwright::doctor
