// Driver and toolkit.
#include <fmt/format.h>

#include <algorithm>

#include "base/rules/facts.h"
#include "base/text.h"
#include "doctor/setup/solver.h"

namespace gpuwright::doctor {

// ---- Driver ----

bool Solver::take_driver(const std::string& cuda) {
  // A later need may only raise what an earlier one chose.
  const std::string floor = cuda.empty() ? "" : compat_.driver_floor(cuda).value_or("");
  if (!wish_.driver) return choose_driver(floor);
  // A branch alone stands for its newest version.
  const bool whole_branch = wish_.driver->find('.') == std::string::npos;
  const int order = whole_branch ? compare_versions(*wish_.driver, catalog::version_prefix(floor, 1))
                                 : compare_versions(*wish_.driver, floor);
  if (!floor.empty() && order < 0)
    return refuse(5, "driver_floor", {{"cuda", cuda}, {"floor", floor}, {"driver", *wish_.driver}});
  set_.driver->branch = static_cast<int>(to_integer(catalog::version_prefix(*wish_.driver, 1)).value_or(0));
  raise_floor(floor);
  set_.driver->keeps = !whole_branch;
  if (const auto* row = compat_.branch_of(*wish_.driver)) set_.driver->open = set_.driver->open && row->open;
  // Open modules are what NVIDIA recommends from 560 on; before 515 there are none, and until 550 those of GeForce
  // cards were not finished (open-gpu-kernel-modules, README: NVreg_OpenRmEnableUnsupportedGpus).
  const bool needs_open = std::any_of(windows_.begin(), windows_.end(),
                                      [](const auto* window) { return window->modules == catalog::Modules::open; });
  if (set_.driver->branch < kOpenByDefault && !needs_open) set_.driver->open = false;
  set_.driver->version = *wish_.driver;
  return true;
}

// To what the CUDA and each GPU need.
void Solver::raise_floor(const std::string& floor) {
  std::string& highest = set_.driver->floor;
  const auto raise = [&highest](const std::string& to) {
    if (!to.empty() && (highest.empty() || compare_versions(to, highest) > 0)) highest = to;
  };
  raise(floor);
  for (const auto* window : windows_)
    if (window->first_driver) raise(std::to_string(*window->first_driver));
}

bool Solver::choose_driver(const std::string& floor) {
  DriverChoice& driver = *set_.driver;
  raise_floor(floor);
  const auto serves_all = [this](int branch) {
    return std::all_of(windows_.begin(), windows_.end(),
                       [&](const auto* window) { return compat_.serves(branch, window->capability).value_or(false); });
  };
  if (wish_.present_driver) {
    const auto branch = to_integer(catalog::version_prefix(*wish_.present_driver, 1));
    if (branch && serves_all(static_cast<int>(*branch)) &&
        (driver.floor.empty() || compare_versions(*wish_.present_driver, driver.floor) >= 0)) {
      driver.branch = static_cast<int>(*branch);
      driver.keeps = true;
      driver.version = *wish_.present_driver;
      return true;
    }
  }
  driver.keeps = false;
  const auto needed = to_integer(catalog::version_prefix(driver.floor, 1)).value_or(0);
  const catalog::DriverBranch* best = nullptr;
  const auto rank = [this](const catalog::DriverBranch& branch) {
    return branch.end >= wish_.today ? static_cast<int>(branch.kind) : -1;  // both are YYYY-MM
  };
  for (const catalog::DriverBranch& branch : compat_.branches) {
    if (branch.kind == catalog::Support::legacy || branch.branch < needed || !serves_all(branch.branch)) continue;
    if (driver.open ? !branch.open : !branch.proprietary) continue;
    if (distribution_->newest_driver && branch.branch > *distribution_->newest_driver && !wish_.wsl) continue;
    if (best == nullptr || rank(branch) >= rank(*best)) best = &branch;
  }
  if (best == nullptr)
    return refuse(5, "driver_distribution",
                  {{"gpu", gpu().name},
                   {"distribution", distribution_->name},
                   {"newest", std::to_string(distribution_->newest_driver.value_or(0))}});
  driver.branch = best->branch;
  const bool lives = rank(*best) >= 0;
  const bool last = std::any_of(windows_.begin(), windows_.end(),
                                [&](const auto* window) { return window->last_driver == best->branch; });
  driver.why = filled_in(word(!lives                                      ? "driver_ended"
                              : last                                      ? "driver_last"
                              : best->kind == catalog::Support::long_term ? "driver_lts"
                                                                          : "driver_production"),
                         {{"branch", std::to_string(best->branch)}, {"end", best->end}, {"gpu", gpu().name}});
  return true;
}

// ---- Toolkit ----

bool Solver::toolkit_suits(const std::string& minor, int stage) {
  const auto* release = compat_.cuda_release(minor);
  if (release == nullptr) return refuse(stage, "toolkit_unknown", {{"cuda", minor}});
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    const auto& window = *windows_[i];
    if (compare_versions(minor, window.first_cuda) >= 0 &&
        (!window.last_cuda || compare_versions(minor, *window.last_cuda) <= 0))
      continue;
    return refuse(stage, "toolkit_gpu",
                  {{"cuda", minor},
                   {"gpu", wish_.gpus[i]->name},
                   {"window", window.last_cuda ? fmt::format("{} to {}", window.first_cuda, *window.last_cuda)
                                               : fmt::format(">= {}", window.first_cuda)}});
  }
  if (wish_.container) return true;
  if (compare_versions(minor, distribution_->first_toolkit) < 0 ||
      (distribution_->last_toolkit && compare_versions(minor, *distribution_->last_toolkit) > 0))
    return refuse(stage, "toolkit_distribution",
                  {{"cuda", minor},
                   {"distribution", distribution_->name},
                   {"range", distribution_->last_toolkit
                                 ? fmt::format("{} to {}", distribution_->first_toolkit, *distribution_->last_toolkit)
                                 : fmt::format(">= {}", distribution_->first_toolkit)}});
  return take_compiler(minor);
}

bool Solver::take_compiler(const std::string& minor) {
  set_.gcc.reset();
  const auto newest = compat_.newest_gcc(minor);
  if (!newest || distribution_->gcc <= *newest) return true;
  for (const int gcc : distribution_->older_gcc)
    if (gcc <= *newest && gcc > set_.gcc.value_or(0)) set_.gcc = gcc;
  if (set_.gcc) return true;
  return refuse(7, "toolkit_compiler",
                {{"cuda", minor},
                 {"gcc", std::to_string(*newest)},
                 {"distribution", distribution_->name},
                 {"own_gcc", std::to_string(distribution_->gcc)}});
}

// The same minor as the framework's, else another of its major: extensions need the major. Asked for by name, only it.
bool Solver::take_toolkit(const std::string& cuda) {
  const std::string asked = cuda.empty() ? "" : catalog::version_prefix(cuda, 2);
  if (!asked.empty() && toolkit_suits(asked, 6)) {
    set_.toolkit = asked;
  } else if (wish_.cuda) {
    return false;
  } else {
    std::optional<std::string> best;
    for (const catalog::CudaRelease& release : compat_.cuda) {
      const std::string minor = catalog::version_prefix(release.version, 2);
      if (!asked.empty() && catalog::version_prefix(minor, 1) != catalog::version_prefix(asked, 1)) continue;
      if (compat_.driver_floor(minor) && !toolkit_suits(minor, 6)) continue;
      // The newest that the driver knows: beyond it, only what is compiled for this very GPU runs.
      const catalog::DriverBranch* branch = compat_.branch_of(std::to_string(set_.driver->branch));
      if (asked.empty() && branch != nullptr && compare_versions(minor, branch->cuda) > 0) continue;
      best = minor;
    }
    if (!best) return false;
    if (!toolkit_suits(*best, 6)) return false;
    set_.toolkit = best;
  }
  if (set_.cuda.empty()) set_.cuda = *set_.toolkit;
  return asked.empty() ? take_driver(*set_.toolkit) : true;
}

}  // namespace gpuwright::doctor
