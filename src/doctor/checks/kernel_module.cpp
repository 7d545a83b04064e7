// NVIDIA's kernel module: is it there, is it loaded, is it the right one; and if not, why.
#include <fmt/format.h>

#include <algorithm>

#include "base/rules/facts.h"
#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/kernel_lines.h"

namespace gpuwright::doctor {
namespace {

using device::Vendor;

// Where a kernel keeps the module, depending on who built it: dkms, a distribution's package, a .run installer.
constexpr std::string_view kModulePlaces[] = {"updates/dkms",
                                              "updates",
                                              "extra",
                                              "extra/nvidia",
                                              "weak-updates/nvidia",
                                              "kernel/drivers/video",
                                              "kernel/drivers/video/nvidia",
                                              "kernel/nvidia",
                                              "kernel/drivers/char/drm",
                                              "video"};

std::optional<std::string> module_file(const Host& host, const std::string& release) {
  const std::string folder = "/lib/modules/" + release + "/";
  for (const std::string_view place : kModulePlaces)
    for (const std::string_view name :
         {"nvidia.ko", "nvidia.ko.zst", "nvidia.ko.xz", "nvidia.ko.gz", "nvidia-current.ko", "nvidia-current.ko.xz"})
      if (std::string path = fmt::format("{}{}/{}", folder, place, name); host.exists(path)) return path;
  // Ubuntu's signed modules: kernel/nvidia-580-open/nvidia.ko
  for (const std::string& name : host.names(folder + "kernel"))
    if (name.starts_with("nvidia-"))
      if (std::string path = folder + "kernel/" + name + "/nvidia.ko"; host.exists(path)) return path;
  return std::nullopt;
}

// Kernels for which there is a module.
std::vector<std::string> kernels_with_module(const Host& host) {
  std::vector<std::string> kernels;
  for (const std::string& release : host.names("/lib/modules", 256))
    if (module_file(host, release)) kernels.push_back(release);
  return kernels;
}

// Lines that say why dkms could not build: the last log there is.
std::optional<Evidence> failed_build(const Host& host) {
  for (const std::string& version : host.names("/var/lib/dkms/nvidia", 256)) {
    const std::string path = "/var/lib/dkms/nvidia/" + version + "/build/make.log";
    const auto text = host.text(path, 4 << 20);
    if (!text) continue;
    std::int64_t number = 0;
    std::optional<Evidence> first_error;
    bool failed = false;
    for (const std::string_view line : split(*text, '\n')) {
      ++number;
      if (!first_error && line.find("error:") != std::string_view::npos)
        first_error = Evidence{path, number, std::string(line.substr(0, 512)), 1};
      failed = failed || line.find("Bad return status") != std::string_view::npos || line.starts_with("make: *** ") ||
               line.find("*** [") != std::string_view::npos;
      if (failed && !first_error) first_error = Evidence{path, number, std::string(line.substr(0, 512)), 1};
    }
    if (failed) return first_error;
  }
  return std::nullopt;
}

std::optional<Evidence> blacklisted(const Host& host) {
  for (const char* folder : {"/etc/modprobe.d", "/lib/modprobe.d", "/usr/lib/modprobe.d"})
    for (const std::string& name : host.names(folder)) {
      const std::string path = std::string(folder) + "/" + name;
      const auto text = name.ends_with(".conf") ? host.text(path) : std::nullopt;
      if (!text) continue;
      std::int64_t number = 0;
      for (const std::string_view line : split(*text, '\n')) {
        ++number;
        const std::string plain(trim(line));
        if (plain == "blacklist nvidia" || plain == "alias nvidia off" || plain == "install nvidia /bin/false" ||
            plain == "install nvidia /bin/true")
          return Evidence{path, number, plain, 1};
      }
    }
  return std::nullopt;
}

std::optional<Evidence> refused_signature(const Host& host) {
  for (const std::string_view part :
       {"Required key not available", "Key was rejected by service", "module verification failed",
        "Loading of unsigned module is rejected", "Loading of module with unavailable key is rejected"}) {
    auto line = find_in_log(host, {part, "nvidia"});
    if (!line && part.starts_with("Loading of")) line = find_in_log(host, {part});
    // A kernel without lockdown loads such a module all the same, and says so by the same words.
    if (line && line->text.find("tainting kernel") == std::string::npos) return line;
  }
  return std::nullopt;
}

// The first byte after the four of attributes: 1 is on (UEFI specification, 3.3).
std::optional<bool> secure_boot(const Host& host) {
  constexpr std::string_view kVariables = "/sys/firmware/efi/efivars";
  for (const std::string& name : host.names(kVariables)) {
    if (!name.starts_with("SecureBoot-")) continue;
    const auto bytes = host.text(fmt::format("{}/{}", kVariables, name), 16);
    if (bytes && bytes->size() >= 5) return (*bytes)[4] == 1;
  }
  if (!host.is_directory("/sys/firmware/efi") && host.is_directory("/sys/firmware")) return false;
  return std::nullopt;
}

enum class Missing {
  nothing,
  not_installed,
  other_kernel,
  build_failed,
  signature,
  blacklisted,
  foreign_driver,
  not_loaded
};

struct ModuleState {
  Missing missing = Missing::nothing;
  std::optional<Evidence> evidence;
  std::string file;
  std::vector<std::string> kernels;
};

bool bound_elsewhere(const Machine& machine) {
  const auto gpus = machine.gpus_of(Vendor::nvidia);
  return !gpus.empty() && std::all_of(gpus.begin(), gpus.end(), [](const PciGpu* gpu) {
    return gpu->driver == "vfio-pci" || gpu->driver == "nouveau" || gpu->driver == "pciback" ||
           gpu->driver == "xen-pciback" || gpu->driver == "nova" || gpu->driver == "nova_core";
  });
}

// Why the module is not loaded, the nearest reason first.
ModuleState module_state(const Machine& machine) {
  const Host& host = machine.host();
  ModuleState state;
  if (machine.module_loaded("nvidia").value_or(true)) return state;
  if (bound_elsewhere(machine)) return {Missing::foreign_driver, {}, {}, {}};
  const std::string release = host.kernel_release().value_or("");
  const auto file = module_file(host, release);
  if (file) state.file = *file;
  if ((state.evidence = refused_signature(host))) return state.missing = Missing::signature, state;
  if (file) {
    state.evidence = blacklisted(host);
    state.missing = state.evidence ? Missing::blacklisted : Missing::not_loaded;
    return state;
  }
  if (machine.surroundings().in_container() || !host.is_directory("/lib/modules") || release.empty())
    return state.missing = Missing::not_loaded, state;
  if ((state.evidence = failed_build(host))) return state.missing = Missing::build_failed, state;
  state.kernels = kernels_with_module(host);
  state.missing = state.kernels.empty() && host.names("/var/lib/dkms/nvidia").empty() ? Missing::not_installed
                                                                                      : Missing::other_kernel;
  return state;
}

std::optional<Outcome> no_question(const Machine& machine) {
  if (machine.surroundings().wsl) return not_applicable("WSL: the driver is Windows'");
  if (machine.gpus_of(Vendor::nvidia).empty()) return not_applicable("no NVIDIA GPU on the bus");
  return std::nullopt;
}

void name_gpus(const Machine& machine, Problem& problem) {
  for (const PciGpu* gpu : machine.gpus_of(Vendor::nvidia)) {
    problem.item("gpus", gpu->name);
    const catalog::ArchitectureWindow* window = machine.compat().architecture(gpu->compute_capability);
    if (window != nullptr && window->modules == catalog::Modules::proprietary) problem.fact("legacy_gpu", gpu->name);
  }
}

Outcome check_loaded(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  const auto loaded = machine.module_loaded("nvidia");
  if (!loaded) return unknown("/proc/modules cannot be read");
  if (*loaded) {
    const NvidiaDriver& driver = machine.nvidia();
    return fine(fmt::format("{}{}", driver.module_version.value_or("loaded"),
                            driver.open ? (*driver.open ? ", open" : ", proprietary") : ""));
  }
  const ModuleState state = module_state(machine);
  Outcome outcome;
  const auto say = [&](std::string_view id, std::string_view where, std::string_view what) -> Problem& {
    Problem& problem = outcome.wrong(id);
    name_gpus(machine, problem);
    if (state.evidence)
      problem.evidence.push_back(*state.evidence);
    else
      problem.seen(where, what);
    return problem;
  };
  switch (state.missing) {
    case Missing::foreign_driver:
      return not_applicable("another driver holds the GPU");
    case Missing::not_installed:
      say("kmod.missing", "/lib/modules", "no nvidia.ko for any kernel");
      break;
    case Missing::other_kernel: {
      Problem& problem = say("kmod.kernel", "/lib/modules/" + machine.host().kernel_release().value_or(""),
                             "no nvidia.ko for the kernel that runs");
      for (const std::string& kernel : state.kernels) problem.item("built_for", kernel);
      break;
    }
    case Missing::build_failed:
      say("kmod.dkms", "", "");
      break;
    case Missing::blacklisted:
      say("kmod.blacklist", "", "");
      break;
    case Missing::signature:
      say("kmod.sig", "", "");
      break;
    case Missing::nothing:
    case Missing::not_loaded:
      say("kmod.loaded", "/proc/modules", "nvidia is not there").fact("module_file", state.file);
      if (secure_boot(machine.host()).value_or(false)) outcome.problems.front().fact("secure_boot", "on");
      break;
  }
  return outcome;
}

Outcome check_secure_boot(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  const auto on = secure_boot(machine.host());
  if (!on) return unknown("the firmware's variables cannot be read");
  return fine(*on ? "on" : "off");
}

Outcome check_nouveau(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  Outcome outcome = fine();
  for (const PciGpu* gpu : machine.gpus_of(Vendor::nvidia))
    if (gpu->driver == "nouveau" || gpu->driver == "nova" || gpu->driver == "nova_core")
      outcome.wrong("kmod.nouveau")
          .item("gpus", gpu->name)
          .fact("driver", gpu->driver)
          .seen(gpu->path("driver"), "-> " + gpu->driver);
  if (outcome.state == State::wrong && machine.host().exists("/lib/modules") &&
      kernels_with_module(machine.host()).empty())
    outcome.problems.front().fact("not_installed", "no nvidia.ko");
  return outcome;
}

// A GPU that waits for a virtual machine is meant to; it is wrong only where no other is left to compute.
Outcome check_vfio(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  Outcome outcome = fine();
  const auto gpus = machine.gpus_of(Vendor::nvidia);
  for (const PciGpu* gpu : gpus)
    if (gpu->driver == "vfio-pci" || gpu->driver == "pciback" || gpu->driver == "xen-pciback")
      outcome.wrong("kmod.vfio")
          .item("gpus", gpu->name)
          .fact("driver", gpu->driver)
          .seen(gpu->path("driver"), "-> " + gpu->driver);
  if (outcome.state == State::wrong && outcome.problems.front().evidence.size() == gpus.size())
    outcome.problems.front().id = "kmod.vfio_all";
  return outcome;
}

// Open modules drive Turing and later; Blackwell is driven by nothing else.
Outcome check_flavour(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  const NvidiaDriver& driver = machine.nvidia();
  if (!driver.open || !driver.module_version) return unknown("the module is not loaded");
  Outcome outcome = fine(*driver.open ? "open" : "proprietary");
  for (const PciGpu* gpu : machine.gpus_of(Vendor::nvidia)) {
    if (gpu->compute_capability.empty()) continue;
    const catalog::ArchitectureWindow* window = machine.compat().architecture(gpu->compute_capability);
    const auto refused = *driver.open ? catalog::Modules::proprietary : catalog::Modules::open;
    if (window == nullptr || window->modules != refused) continue;
    outcome.wrong(*driver.open ? "kmod.flavour_open" : "kmod.flavour_closed")
        .item("gpus", gpu->name)
        .version("driver_version", *driver.module_version)
        .seen("/proc/driver/nvidia/version", *driver.open ? "Open Kernel Module" : "Kernel Module");
  }
  return outcome;
}

// The module is loaded, but the card did not come up.
Outcome check_init(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  if (!machine.host().kernel_log()) return unknown("the kernel's log may not be read");
  Outcome outcome = fine();
  if (const auto line = find_in_log(machine.host(), {"NVRM", "RmInitAdapter failed"}))
    outcome.wrong("kmod.init").evidence.push_back(*line);
  return outcome;
}

}  // namespace

std::vector<Check> kernel_module_checks() {
  return {{"kmod.nouveau", Layer::kernel_module, check_nouveau},
          {"kmod.vfio", Layer::kernel_module, check_vfio},
          {"kmod.loaded", Layer::kernel_module, check_loaded},
          {"kmod.secureboot", Layer::kernel_module, check_secure_boot},
          {"kmod.flavour", Layer::kernel_module, check_flavour},
          {"kmod.init", Layer::kernel_module, check_init}};
}

}  // namespace gpuwright::doctor
