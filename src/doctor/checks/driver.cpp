// The user-space half of NVIDIA's driver: is it there, once, of the version that the kernel module has, and does it
// still know the GPU.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/rules/facts.h"
#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/kernel_lines.h"

namespace gpuwright::doctor {
namespace {

using device::SourceReport;
using device::Vendor;

std::optional<Outcome> no_question(const Machine& machine) {
  if (!machine.has_nvidia()) return not_applicable("no NVIDIA GPU");
  return std::nullopt;
}

std::set<std::string> versions_of(const std::vector<NvidiaDriver::Library>& libraries) {
  std::set<std::string> versions;
  for (const auto& library : libraries) versions.insert(library.version);
  return versions;
}

// When the packages changed last, for the question that people ask: "it worked yesterday".
std::optional<Evidence> last_upgrade(const Host& host) {
  const std::string path = "/var/log/apt/history.log";
  const auto text = host.text(path, 4 << 20);
  if (!text) return std::nullopt;
  std::optional<Evidence> last;
  std::string date;
  std::int64_t number = 0;
  for (const std::string_view line : split(*text, '\n')) {
    ++number;
    if (line.starts_with("Start-Date:")) date = trim(line.substr(11));
    const bool changed = line.starts_with("Upgrade:") || line.starts_with("Install:");
    if (changed && line.find("nvidia") != std::string_view::npos)
      last = Evidence{path, number, fmt::format("{}: {}", date, line.substr(0, 160)), 1};
  }
  return last;
}

// The libraries of one driver are replaced while the kernel still runs the module of another.
Outcome check_mismatch(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  if (machine.surroundings().wsl) return not_applicable("WSL: the driver is Windows'");
  const NvidiaDriver& driver = machine.nvidia();
  if (!driver.module_version) return unknown("the kernel module's version is not known");
  const auto& libraries = driver.nvml_libraries.empty() ? driver.cuda_libraries : driver.nvml_libraries;
  const std::set<std::string> versions = versions_of(libraries);
  if (versions.empty()) return unknown("no library of the driver was found");
  if (versions.contains(*driver.module_version)) return fine(*driver.module_version);
  Outcome outcome;
  Problem& problem = outcome.wrong("drv.mismatch");
  problem.version("module_version", *driver.module_version).version("library_version", *versions.rbegin());
  problem.seen("/proc/driver/nvidia/version", *driver.module_version);
  for (const auto& library : libraries) problem.seen(library.path, library.version);
  if (const auto upgrade = last_upgrade(machine.host())) problem.evidence.push_back(*upgrade);
  return outcome;
}

Outcome check_several(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  const NvidiaDriver& driver = machine.nvidia();
  const std::set<std::string> versions = versions_of(driver.cuda_libraries);
  if (versions.empty()) return unknown("no libcuda was found");
  if (versions.size() == 1) return fine(*versions.begin());
  Outcome outcome;
  Problem& problem = outcome.wrong("drv.several");
  for (const std::string& version : versions) problem.item("versions", version);
  for (const auto& library : driver.cuda_libraries) problem.seen(library.path, library.version);
  if (machine.host().exists("/usr/bin/nvidia-uninstall") || machine.host().exists("/usr/bin/nvidia-installer"))
    problem.fact("run_installer", "/usr/bin/nvidia-uninstall")
        .seen("/usr/bin/nvidia-uninstall", "left by a .run installer");
  return outcome;
}

Outcome check_library(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  if (machine.surroundings().in_container()) return not_applicable("in a container: see ct.inside");
  if (machine.surroundings().wsl) return not_applicable("WSL: see sys.wsl");
  if (!machine.module_loaded("nvidia").value_or(false)) return not_applicable("the kernel module is not loaded");
  const NvidiaDriver& driver = machine.nvidia();
  if (!driver.cuda_libraries.empty()) return fine(driver.cuda_libraries.front().path);
  if (machine.library_folders().empty()) return unknown("the loader's folders cannot be listed");
  Outcome outcome;
  outcome.wrong("drv.library")
      .version("module_version", driver.module_version.value_or(""))
      .seen(machine.library_folders().front(), "no libcuda.so.*");
  return outcome;
}

// The newest branch that still knows a GPU, by the table of architectures; the kernel's log tells, too.
Outcome check_too_new(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  const auto version = machine.nvidia().version();
  const std::int64_t branch = version ? to_integer(version->substr(0, version->find('.'))).value_or(0) : 0;
  Outcome outcome = fine();
  for (const PciGpu* gpu : machine.gpus_of(Vendor::nvidia)) {
    const catalog::ArchitectureWindow* window = machine.compat().architecture(gpu->compute_capability);
    if (branch == 0 || window == nullptr) continue;
    if (window->last_driver && branch > *window->last_driver)
      outcome.wrong("drv.too_new")
          .item("gpus", gpu->name)
          .version("driver_version", *version)
          .fact("last_branch", *window->last_driver)
          .seen("/proc/driver/nvidia/version", *version);
    else if (window->first_driver && branch < *window->first_driver)
      outcome.wrong("drv.too_old")
          .item("gpus", gpu->name)
          .version("driver_version", *version)
          .fact("first_branch", *window->first_driver)
          .seen("/proc/driver/nvidia/version", *version);
  }
  if (outcome.state != State::wrong)
    if (const auto line = find_in_log(machine.host(), {"NVRM", "supported through the NVIDIA", "Legacy"}))
      outcome.wrong("drv.legacy_branch").evidence.push_back(*line);
  return outcome;
}

// "2026-12": of this machine its clock; a captured one says when it was captured.
std::optional<std::string> month_of(const Host& host) {
  if (const Json* date = host.captured("date"); date != nullptr && date->is_string())
    return std::string(date->as_string()->substr(0, 7));
  if (!host.is_live()) return std::nullopt;
  const auto today =
      std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
  return fmt::format("{:04d}-{:02d}", static_cast<int>(today.year()), static_cast<unsigned>(today.month()));
}

Outcome check_branch(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  const auto version = machine.nvidia().version();
  const catalog::DriverBranch* branch = version ? machine.compat().branch_of(*version) : nullptr;
  const auto month = month_of(machine.host());
  if (branch == nullptr || branch->end.empty() || !month) return unknown("the branch or the date is not known");
  if (branch->end >= *month) return fine(fmt::format("R{}, until {}", branch->branch, branch->end));
  Outcome outcome;
  outcome.wrong("drv.branch")
      .fact("branch", branch->branch)
      .fact("end", branch->end)
      .seen("/proc/driver/nvidia/version", *version);
  return outcome;
}

// What NVML answered where the files look right.
Outcome check_nvml(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  if (machine.snapshot() == nullptr) return unknown("the driver was not asked");
  for (const SourceReport& report : machine.snapshot()->sources) {
    if (report.source != "nvml") continue;
    if (report.outcome == SourceReport::Outcome::found) return fine();
    if (report.outcome == SourceReport::Outcome::absent) return unknown(report.text);
    Outcome outcome;
    outcome.wrong("drv.nvml").fact("answer", report.text).seen("libnvidia-ml.so.1", report.text);
    return outcome;
  }
  return unknown("the driver was not asked");
}

}  // namespace

std::vector<Check> driver_checks() {
  return {{"drv.mismatch", Layer::driver, check_mismatch}, {"drv.several", Layer::driver, check_several},
          {"drv.library", Layer::driver, check_library},   {"drv.too_new", Layer::driver, check_too_new},
          {"drv.nvml", Layer::driver, check_nvml},         {"drv.branch", Layer::driver, check_branch}};
}

}  // namespace gpuwright::doctor
