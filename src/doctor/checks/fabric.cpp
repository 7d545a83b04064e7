// Machines whose GPUs talk through NVSwitch need a daemon that wires it up.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/checks/checks.h"

namespace gpuwright::doctor {
namespace {

using device::Vendor;

// NVSwitches are bridges of NVIDIA's (class 0680).
std::vector<std::string> switches(const Host& host) {
  std::vector<std::string> found;
  for (const std::string& address : host.names("/sys/bus/pci/devices", 65536)) {
    const std::string folder = "/sys/bus/pci/devices/" + address;
    if (host.integer(folder + "/class").value_or(0) >> 8 == 0x0680 &&
        host.integer(folder + "/vendor").value_or(0) == 0x10de)
      found.push_back(address);
  }
  return found;
}

bool runs(const std::vector<std::string>& processes, std::string_view name) {
  return std::any_of(processes.begin(), processes.end(), [&](const std::string& process) {
    return process == name || (process.size() == 15 && name.starts_with(process));  // comm is cut to 15 bytes
  });
}

// "Version:" of an installed package of dpkg whose name begins so.
std::optional<std::string> package_version(const Host& host, std::string_view prefix) {
  const auto status = host.text("/var/lib/dpkg/status", 32 << 20);
  if (!status) return std::nullopt;
  bool ours = false, installed = false;
  for (const std::string_view line : split(*status, '\n')) {
    if (line.starts_with("Package: ")) ours = line.substr(9).starts_with(prefix), installed = false;
    if (ours && line.starts_with("Status: ")) installed = line.ends_with(" installed");
    if (ours && installed && line.starts_with("Version: ")) return std::string(line.substr(9));
  }
  return std::nullopt;
}

Outcome check_manager(const Machine& machine) {
  if (machine.gpus_of(Vendor::nvidia).empty()) return not_applicable("no NVIDIA GPU");
  const auto found = switches(machine.host());
  if (found.empty()) return not_applicable("no NVSwitch");
  if (machine.surroundings().in_container() || machine.surroundings().virtual_machine)
    return not_applicable("the fabric is the host's");
  const auto processes = machine.host().processes();
  if (!processes) return unknown("the processes cannot be listed");
  const auto version = machine.nvidia().module_version;
  const std::string branch = version ? version->substr(0, version->find('.')) : "";
  Outcome outcome = fine(fmt::format("{} NVSwitches", found.size()));
  if (!runs(*processes, "nv-fabricmanager")) {
    outcome.wrong("fab.manager")
        .version("driver_version", version.value_or(""))
        .fact("branch", branch)
        .fact("switches", static_cast<std::int64_t>(found.size()))
        .seen("/proc", "no nv-fabricmanager runs");
    return outcome;
  }
  const auto package = package_version(machine.host(), "nvidia-fabricmanager");
  if (!version || !package || package->find(*version) != std::string::npos) return outcome;
  outcome.wrong("fab.version")
      .version("driver_version", *version)
      .version("manager_version", *package)
      .fact("branch", branch)
      .seen("/var/lib/dpkg/status", "nvidia-fabricmanager " + *package);
  return outcome;
}

Outcome check_imex(const Machine& machine) {
  const auto gpus = machine.gpus_of(Vendor::nvidia);
  const bool rack = std::any_of(gpus.begin(), gpus.end(), [](const PciGpu* gpu) {
    return gpu->name.find("GB200") != std::string::npos || gpu->name.find("GB300") != std::string::npos;
  });
  if (!rack) return not_applicable("no GB200 or GB300");
  const auto processes = machine.host().processes();
  if (!processes) return unknown("the processes cannot be listed");
  Outcome outcome = fine();
  if (!runs(*processes, "nvidia-imex")) outcome.wrong("fab.imex").seen("/proc", "no nvidia-imex runs");
  return outcome;
}

}  // namespace

std::vector<Check> fabric_checks() {
  return {{"fab.manager", Layer::fabric, check_manager}, {"fab.imex", Layer::fabric, check_imex}};
}

}  // namespace gpuwright::doctor
