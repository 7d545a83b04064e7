#include "doctor/setup/solver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/rules/facts.h"
#include "base/text.h"

namespace gpuwright::doctor {
namespace {

// Python 3.9 had its last fixes in October 2025 (PEP 596).
constexpr std::string_view kOldestLivingPython = "3.10";
constexpr const char* kOtherPythons[] = {"3.12", "3.13", "3.11", "3.14", "3.10", "3.9", "3.8", "3.7"};

template <class Rows>
std::string versions_of(const Rows& rows) {
  std::vector<std::string> versions;
  for (const auto& row : rows) versions.push_back(row.version);
  return fmt::format("{}", fmt::join(versions, ", "));
}

}  // namespace

Solver::Solver(const catalog::Compat& compat, const SetupTables& tables, const SetupWish& wish)
    : compat_(compat), tables_(tables), wish_(wish), distribution_(tables.distribution(wish.distribution)) {
  set_.distribution = distribution_;
}

bool Solver::refuse(int stage, std::string_view reason, const Names& names) {
  if (stage > furthest_) {
    furthest_ = stage;
    reason_ = filled_in(tables_.reasons.find(reason)->second, names);
  }
  return false;
}

bool Solver::python_suits(const std::string& python, const std::string& low, const std::string& high) const {
  return compare_versions(python, low) >= 0 && compare_versions(python, high) <= 0;
}

tl::expected<SetupSet, Words> Solver::solve() {
  if (!take_vendor()) return tl::unexpected(reason_);
  return set_.vendor == "NVIDIA" ? solve_nvidia() : solve_other();
}

bool Solver::take_vendor() {
  set_.vendor = gpu().vendor;
  for (const catalog::Accelerator* one : wish_.gpus)
    if (one->vendor != set_.vendor) return refuse(0, "vendors", {});
  if (set_.vendor != "NVIDIA" && set_.vendor != "AMD" && set_.vendor != "Intel")
    return refuse(0, "vendor", {{"gpu", gpu().name}, {"vendor", gpu().vendor}});
  return true;
}

bool Solver::take_architectures() {
  for (const catalog::Accelerator* one : wish_.gpus) {
    const auto* window = one->compute_capability ? compat_.architecture(*one->compute_capability) : nullptr;
    if (window == nullptr) return refuse(0, "architecture", {{"gpu", one->name}});
    if (window->own_code) return refuse(0, "tegra", {{"gpu", one->name}});
    windows_.push_back(window);
  }
  return true;
}

bool Solver::take_modules() {
  const auto with = [this](catalog::Modules modules) -> const catalog::Accelerator* {
    for (std::size_t i = 0; i < windows_.size(); ++i)
      if (windows_[i]->modules == modules) return wish_.gpus[i];
    return nullptr;
  };
  const auto* closed = with(catalog::Modules::proprietary);
  const auto* open = with(catalog::Modules::open);
  if (closed != nullptr && open != nullptr) return refuse(0, "modules", {{"gpu", closed->name}, {"other", open->name}});
  set_.driver = DriverChoice{};
  set_.driver->open = closed == nullptr;
  return true;
}

bool Solver::driver_that_stays_serves() {
  if (!wish_.driver) return true;
  const int branch = static_cast<int>(to_integer(catalog::version_prefix(*wish_.driver, 1)).value_or(0));
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    if (compat_.serves(branch, windows_[i]->capability).value_or(false)) continue;
    const auto& window = *windows_[i];
    const std::string range = window.last_driver ? fmt::format("{} to {}", *window.first_driver, *window.last_driver)
                                                 : fmt::format(">= {}", window.first_driver.value_or(0));
    return refuse(1, "driver_gpu",
                  {{"driver", std::to_string(branch)}, {"gpu", wish_.gpus[i]->name}, {"driver_range", range}});
  }
  return true;
}

std::vector<std::string> Solver::pythons() const {
  if (wish_.python) return {catalog::version_prefix(*wish_.python, 2)};
  std::vector<std::string> order;
  const auto add = [&order](const std::string& python) {
    if (std::find(order.begin(), order.end(), python) == order.end()) order.push_back(python);
  };
  for (const std::string& python : distribution_->pythons)
    if (compare_versions(python, kOldestLivingPython) >= 0) add(python);
  for (const char* python : kOtherPythons)
    if (compare_versions(python, kOldestLivingPython) >= 0) add(python);
  for (const std::string& python : distribution_->pythons) add(python);
  for (const char* python : kOtherPythons) add(python);
  return order;
}

tl::expected<SetupSet, Words> Solver::solve_nvidia() {
  if (!take_architectures() || !take_modules() || !driver_that_stays_serves()) return tl::unexpected(reason_);
  const SetupSet begin = set_;
  for (const std::string& python : pythons()) {
    set_ = begin;
    if (!take_frameworks(python)) continue;
    set_.python = python;
    set_.python_of_distribution = std::count(distribution_->pythons.begin(), distribution_->pythons.end(), python) > 0;
    take_image();
    take_notes();
    return set_;
  }
  return tl::unexpected(reason_);
}

bool Solver::take_frameworks(const std::string& python) {
  if (wish_.wants_tensorflow && !take_tensorflow(python)) return false;
  if (wish_.wants_torch && !take_torch(python)) return false;
  if (wish_.wants_jax && !take_jax(python)) return false;
  if (wish_.wants_torch) return true;  // its builds were chosen with driver and toolkit
  const std::string cuda = wish_.cuda.value_or(set_.tensorflow != nullptr ? set_.tensorflow->cuda
                                               : set_.jax != nullptr      ? set_.jax->cuda
                                                                          : "");
  if (!cuda.empty() && !compat_.driver_floor(cuda)) return refuse(3, "toolkit_unknown", {{"cuda", cuda}});
  if (!take_driver(cuda)) return false;
  const bool compiles = wish_.toolkit || (set_.tensorflow == nullptr && set_.jax == nullptr);
  return !compiles || take_toolkit(cuda);
}

// ---- PyTorch ----

bool Solver::take_torch(const std::string& python) {
  if (wish_.torch) {
    const catalog::TorchRelease* release = compat_.torch_release(*wish_.torch);
    if (release == nullptr)
      return refuse(2, "torch_unknown", {{"torch", *wish_.torch}, {"known", versions_of(compat_.torch)}});
    return take_torch_release(*release, python);
  }
  for (auto release = compat_.torch.rbegin(); release != compat_.torch.rend(); ++release)
    if (take_torch_release(*release, python)) return true;
  return false;
}

bool Solver::has_code(const catalog::TorchRelease& release, const std::vector<const catalog::TorchBuild*>& builds) {
  std::vector<std::string> tags;
  for (const catalog::TorchBuild* build : builds) tags.push_back(build->tag);
  const std::string joined = fmt::format("{}", fmt::join(tags, ", "));
  for (std::size_t i = 0; i < wish_.gpus.size(); ++i) {
    bool any = false, known = false;
    for (const catalog::TorchBuild* build : builds) {
      const auto runs = compat_.runs_on(*build, windows_[i]->capability, wish_.aarch64);
      any |= runs.value_or(false);
      known |= runs.has_value();
    }
    if (any) continue;
    return refuse(3, known ? "torch_code" : "torch_arm",
                  {{"torch", release.version},
                   {"tags", joined},
                   {"capability", windows_[i]->capability},
                   {"gpu", wish_.gpus[i]->name}});
  }
  return true;
}

bool Solver::take_torch_release(const catalog::TorchRelease& release, const std::string& python) {
  std::vector<const catalog::TorchBuild*> builds;
  for (const catalog::TorchBuild& build : release.builds)
    if (!wish_.cuda || catalog::version_prefix(*wish_.cuda, 2) == build.cuda) builds.push_back(&build);
  if (builds.empty()) {
    std::vector<std::string> tags;
    for (const catalog::TorchBuild& build : release.builds) tags.push_back(build.tag);
    return refuse(
        2, "torch_tag",
        {{"torch", release.version}, {"cuda", *wish_.cuda}, {"tags", fmt::format("{}", fmt::join(tags, ", "))}});
  }
  if (set_.tensorflow != nullptr && !wish_.container) {
    // nvidia-cudnn-cu12 and -cu13 bring files of the same names into the same folders.
    const std::string major = catalog::version_prefix(set_.tensorflow->cuda, 1);
    std::string tags;
    for (const catalog::TorchBuild* build : builds) tags += (tags.empty() ? "" : ", ") + build->tag;
    builds.erase(std::remove_if(builds.begin(), builds.end(),
                                [&](const auto* build) { return catalog::version_prefix(build->cuda, 1) != major; }),
                 builds.end());
    if (builds.empty())
      return refuse(
          2, "torch_tensorflow",
          {{"tensorflow", set_.tensorflow->version}, {"major", major}, {"torch", release.version}, {"tags", tags}});
  }
  if (!has_code(release, builds)) return false;
  if (!python_suits(python, release.oldest_python, release.newest_python))
    return refuse(python_stage(), "torch_python",
                  {{"torch", release.version},
                   {"low", release.oldest_python},
                   {"high", release.newest_python},
                   {"python", python}});
  // What PyPI has first, then what the release calls stable, newest CUDA first.
  std::stable_sort(builds.begin(), builds.end(), [&](const auto* left, const auto* right) {
    const auto rank = [&](const catalog::TorchBuild& build) {
      return build.tag == release.default_tag ? 0 : build.experimental ? 2 : 1;
    };
    if (rank(*left) != rank(*right)) return rank(*left) < rank(*right);
    return compare_versions(left->cuda, right->cuda) > 0;
  });
  for (const catalog::TorchBuild* build : builds) {
    if (!std::all_of(windows_.begin(), windows_.end(), [&](const auto* window) {
          return compat_.runs_on(*build, window->capability, wish_.aarch64).value_or(false);
        }))
      continue;
    if (!take_driver(build->cuda) || (wish_.toolkit && !take_toolkit(build->cuda))) continue;
    set_.torch = &release;
    set_.build = build;
    set_.tag = build->tag;
    set_.cuda = build->cuda;
    return true;
  }
  return false;
}

// ---- TensorFlow, JAX ----

bool Solver::take_tensorflow(const std::string& python) {
  const auto suits = [&](const catalog::TensorflowRelease& release) {
    const std::string& first = std::find_if(compat_.tensorflow.begin(), compat_.tensorflow.end(), [](const auto& row) {
                                 return row.brings_cuda;
                               })->version;
    if (!release.brings_cuda && !wish_.container)
      return refuse(2, "tensorflow_pip", {{"tensorflow", release.version}, {"first", first}});
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      const std::string& capability = windows_[i]->capability;
      const bool code = std::any_of(release.archs.begin(), release.archs.end(),
                                    [&](const std::string& arch) { return catalog::cubin_runs_on(arch, capability); });
      if (!code && !(release.ptx && compare_versions(*release.ptx, capability) <= 0))
        return refuse(3, "tensorflow_code",
                      {{"tensorflow", release.version}, {"capability", capability}, {"gpu", wish_.gpus[i]->name}});
    }
    if (!python_suits(python, release.oldest_python, release.newest_python))
      return refuse(python_stage(), "tensorflow_python",
                    {{"tensorflow", release.version},
                     {"low", release.oldest_python},
                     {"high", release.newest_python},
                     {"python", python}});
    // PTX is compiled by the driver, which has to know the toolkit that made it.
    if (!take_driver(release.cuda)) return false;
    set_.tensorflow = &release;
    if (set_.cuda.empty()) set_.cuda = release.cuda;
    return true;
  };
  if (wish_.tensorflow) {
    const catalog::TensorflowRelease* release = compat_.tensorflow_release(*wish_.tensorflow);
    if (release == nullptr)
      return refuse(2, "tensorflow_unknown",
                    {{"tensorflow", *wish_.tensorflow}, {"known", versions_of(compat_.tensorflow)}});
    return suits(*release);
  }
  return std::any_of(compat_.tensorflow.rbegin(), compat_.tensorflow.rend(), suits);
}

bool Solver::take_jax(const std::string& python) {
  for (auto extra = compat_.jax.rbegin(); extra != compat_.jax.rend(); ++extra) {
    if (!set_.cuda.empty() && catalog::version_prefix(set_.cuda, 1) != catalog::version_prefix(extra->cuda, 1))
      continue;  // their libraries, too, bring the same files
    bool served = true;
    for (std::size_t i = 0; i < windows_.size() && served; ++i)
      if (compare_versions(windows_[i]->capability, extra->oldest) < 0)
        served = refuse(3, "jax_gpu",
                        {{"jax", extra->extra},
                         {"oldest", extra->oldest},
                         {"gpu", wish_.gpus[i]->name},
                         {"capability", windows_[i]->capability}});
    if (!served) continue;
    if (!python_suits(python, extra->oldest_python, extra->newest_python)) {
      refuse(python_stage(), "jax_python",
             {{"low", extra->oldest_python}, {"high", extra->newest_python}, {"python", python}});
      continue;
    }
    if (!take_driver(extra->cuda)) continue;
    set_.jax = &*extra;
    if (set_.cuda.empty()) set_.cuda = extra->cuda;
    return true;
  }
  return false;
}

}  // namespace gpuwright::doctor
