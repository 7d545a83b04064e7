#include "doctor/setup/setup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/quote.h"
#include "base/rules/facts.h"
#include "base/text.h"
#include "doctor/setup/solver.h"

namespace gpuwright::doctor {
namespace {

std::string without_dots(std::string text, char instead) {
  if (instead == '\0')
    text.erase(std::remove(text.begin(), text.end(), '.'), text.end());
  else
    std::replace(text.begin(), text.end(), '.', instead);
  return text;
}

// Each torchaudio was made for one PyTorch; the last one serves all that follow, but has wheels only for the CUDA and
// ROCm of its own time.
bool audio_comes_along(const catalog::Compat& compat, const SetupSet& set) {
  if (!set.torch->audio) return false;
  const catalog::TorchRelease* own = compat.torch_release(*set.torch->audio);
  if (own == nullptr || own == set.torch || set.tag == "xpu") return true;
  return own->build(set.tag) != nullptr || (own->rocm && set.tag == "rocm" + *own->rocm);
}

std::string torch_packages(const catalog::Compat& compat, const SetupSet& set) {
  std::string packages = fmt::format("torch=={}", set.torch->newest);
  // 2.3 is the first release that works with NumPy 2, as doctor's fw.numpy has it.
  if (compare_versions(set.torch->version, "2.3") < 0) packages += " 'numpy<2'";
  if (set.torch->vision) packages += fmt::format(" 'torchvision=={}.*'", *set.torch->vision);
  if (audio_comes_along(compat, set)) packages += fmt::format(" 'torchaudio=={}.*'", *set.torch->audio);
  return packages;
}

// What {names} in the steps become.
Names names_of(const catalog::Compat& compat, const SetupWish& wish, const SetupSet& set) {
  const SetupDistribution& distribution = *set.distribution;
  Names names = {{"repo", distribution.repository.value_or("")},
                 {"repo_arch", wish.aarch64 ? "sbsa" : "x86_64"},
                 {"major", distribution.id.substr(distribution.id.find('-') + 1)},
                 {"python", set.python},
                 {"python_flat", without_dots(set.python, '\0')},
                 {"own_gcc", std::to_string(distribution.gcc)},
                 {"cuda", set.cuda},
                 {"image", set.image},
                 {"tag", set.tag}};
  if (distribution.repository == "amzn2023") names["major"] = "9";
  if (set.driver) {
    names["branch"] = std::to_string(set.driver->branch);
    names["driver"] = set.driver->version;
    names["floor"] = set.driver->floor;
    // Ubuntu's and Debian's packages carry no branch in their names from 590 on.
    names["fabric_package"] =
        set.driver->branch >= 590 ? "nvidia-fabricmanager" : fmt::format("nvidia-fabricmanager-{}", set.driver->branch);
  }
  if (set.torch != nullptr) {
    names["torch"] = set.torch->newest;
    names["torch_packages"] = torch_packages(compat, set);
    names["audio"] = set.torch->audio.value_or("");
    names["default"] = set.torch->default_tag;
  }
  if (set.tensorflow != nullptr) {
    names["tensorflow"] = set.tensorflow->newest;
    names["tensorflow_cuda"] = set.tensorflow->cuda;
    names["tensorflow_cudnn"] = set.tensorflow->cudnn;
  }
  if (set.jax != nullptr) names["jax"] = set.jax->extra;
  if (set.toolkit) {
    const std::string home = distribution.id == "arch" ? "/opt/cuda" : "/usr/local/cuda-" + *set.toolkit;
    names["toolkit"] = *set.toolkit;
    names["toolkit_dash"] = without_dots(*set.toolkit, '-');
    names["cuda_home"] = home;
    const std::string compiler = distribution.dialects.front().starts_with("rhel")
                                     ? fmt::format("/opt/rh/gcc-toolset-{}/root/usr/bin/g++", set.gcc.value_or(0))
                                     : fmt::format("g++-{}", set.gcc.value_or(0));
    names["ccbin"] = set.gcc ? fmt::format("-ccbin {} ", compiler) : "";
    // The variable is for the shell that reads the file.
    names["environment_lines"] =
        fmt::format("{} \"export PATH={}/bin:\\$PATH\"", shell_word("export CUDA_HOME=" + home), home);
    if (set.gcc) {
      names["gcc"] = std::to_string(*set.gcc);
      names["environment_lines"] += " " + shell_word(fmt::format("export NVCC_PREPEND_FLAGS='-ccbin {}'", compiler));
    }
  }
  std::string lines;
  for (const auto& [name, value] : set.variables)
    lines += (lines.empty() ? "" : " ") + shell_word(fmt::format("export {}={}", name, shell_word(value)));
  names["variable_lines"] = lines;
  return names;
}

// Whether boards of the kind come joined by NVSwitches in some machines.
bool may_have_switches(const SetupWish& wish) {
  return std::any_of(wish.gpus.begin(), wish.gpus.end(), [](const catalog::Accelerator* gpu) {
    return gpu->family == "datacenter" && gpu->form_factor.find("SXM") != std::string::npos &&
           gpu->compute_capability && compare_versions(*gpu->compute_capability, "7.0") >= 0;
  });
}

std::vector<std::string> step_ids(const catalog::Compat& compat, const SetupWish& wish, const SetupSet& set) {
  std::vector<std::string> ids;
  const auto add = [&ids](std::string_view id) { ids.emplace_back(id); };
  const bool frameworks = set.torch != nullptr || set.tensorflow != nullptr || set.jax != nullptr;
  add("look");
  if (set.vendor == "NVIDIA") {
    const bool installs = !set.driver->keeps && !wish.wsl;
    const bool packages = set.distribution->repository.has_value();
    if (installs) add("headers");
    if (packages && (installs || (set.toolkit && !wish.container))) add("repository");
    add(wish.wsl            ? "driver.wsl"
        : set.driver->keeps ? "driver.keep"
        : set.driver->open  ? "driver.open"
        : wish.driver       ? "driver.asked"
                            : "driver.proprietary");
    add("check.driver");
    if (!wish.wsl && may_have_switches(wish)) add("fabric");
    if (set.toolkit && !wish.container) {
      add("toolkit");
      if (set.gcc) add("compiler");
      add("environment");
    }
  } else {
    add(set.vendor == "AMD" ? "amd.driver" : "intel.driver");
  }
  if (wish.container) {
    add("container.docker");
    if (set.vendor == "NVIDIA") {
      add("container.toolkit");
      add("container.configure");
      add("image");
    } else {
      add(set.vendor == "AMD" ? "image.amd" : "image.intel");
    }
  } else if (frameworks) {
    add(set.python_of_distribution ? "python" : "python.uv");
    if (set.torch != nullptr) add("torch");
    if (set.torch != nullptr && set.torch->audio && !audio_comes_along(compat, set)) add("torchaudio");
    if (set.tensorflow != nullptr) add("tensorflow");
    if (set.jax != nullptr) add("jax");
    if (!set.variables.empty()) add("variables");
    add("check.python");
  }
  if (set.vendor == "NVIDIA") {
    add("check.cpp");
    if (set.toolkit && !wish.container) add("check.cuda");
  }
  return ids;
}

std::set<std::string> words_of(const SetupWish& wish) {
  std::set<std::string> words;
  if (wish.wants_torch) words.insert("torch");
  if (wish.wants_tensorflow) words.insert("tensorflow");
  if (wish.toolkit) words.insert("toolkit");
  if (wish.container) words.insert("container");
  for (const catalog::Accelerator* gpu : wish.gpus) {
    words.insert(lower(gpu->vendor));
    const std::string capability = gpu->compute_capability.value_or("");
    if (gpu->vendor != "NVIDIA" || capability.empty()) continue;
    if (capability == "8.9") words.insert("ada");
    if (compare_versions(capability, "10.0") >= 0) words.insert("blackwell");
    if (compare_versions(capability, "7.5") < 0) words.insert("pre-turing");
  }
  return words;
}

Words torch_why(const SetupTables& tables, const SetupWish& wish, const SetupSet& set, const Names& names) {
  if (set.build == nullptr) return {};
  const bool plain = set.tag == set.torch->default_tag;
  Names with_gpu = names;
  with_gpu["gpu"] = wish.gpus.front()->name;
  return filled_in(tables.words.find(plain ? "torch_default" : "torch_code")->second, with_gpu);
}

}  // namespace

// The driver that is here stays where nothing newer would come of another one.
tl::expected<SetupSet, Words> Setup::solve(const SetupWish& wish) const {
  auto best = Solver(compat_, tables_, wish).solve();
  if (!wish.present_driver || wish.driver || !best || !best->driver || best->driver->keeps) return best;
  SetupWish kept = wish;
  kept.driver = wish.present_driver;
  auto set = Solver(compat_, tables_, kept).solve();
  if (!set || set->torch != best->torch || set->tensorflow != best->tensorflow || set->jax != best->jax) return best;
  const catalog::DriverBranch* branch = compat_.branch_of(*wish.present_driver);
  if (branch != nullptr && branch->end < wish.today)
    set->notes.insert(set->notes.begin(),
                      filled_in(tables_.words.find("driver_kept_ended")->second,
                                {{"branch", std::to_string(branch->branch)}, {"end", branch->end}}));
  return set;
}

std::vector<SetupAction> Setup::actions(const SetupWish& wish, const SetupSet& set) const {
  const Names names = names_of(compat_, wish, set);
  const std::vector<std::string>& dialects = set.distribution->dialects;
  std::vector<SetupAction> actions;
  for (const std::string& id : step_ids(compat_, wish, set)) {
    const SetupStep* step = tables_.step(id);
    if (step == nullptr) continue;
    SetupAction action{id, filled_in(step->title, names), {}, {}, {}, step->repository, step->reboot};
    const auto why = [&](const std::string& text, const std::string& driver, const std::string& torch) {
      Names more = names;
      more["driver_why"] = driver;
      more["torch_why"] = torch;
      std::string variables;
      for (const Words& note : set.notes)
        if (!set.variables.empty() && note.en.find(set.variables.front().first) != std::string::npos)
          variables = note.en;
      more["variables_why"] = variables;
      return std::string(trim(filled_in(text, more)));
    };
    const Words torch = torch_why(tables_, wish, set, names);
    const Words driver = set.driver ? set.driver->why : Words{};
    action.why = {why(step->why.en, driver.en, torch.en), why(step->why.zh, driver.zh, torch.zh)};
    Names with_packages = names;
    if (const auto* packages = nearest(step->packages, dialects)) {
      for (const std::string& package : *packages) action.packages.push_back(filled_in(package, names));
      with_packages["packages"] = fmt::format("{}", fmt::join(action.packages, " "));
    }
    if (const auto* commands = nearest(step->commands, dialects))
      for (const std::string& command : *commands) action.commands.push_back(filled_in(command, with_packages));
    actions.push_back(std::move(action));
  }
  return actions;
}

std::vector<const OldRecipe*> Setup::old_recipes(const SetupWish& wish) const {
  const std::set<std::string> words = words_of(wish);
  std::vector<const OldRecipe*> recipes;
  for (const OldRecipe& recipe : tables_.recipes)
    if (std::all_of(recipe.when.begin(), recipe.when.end(),
                    [&](const std::string& word) { return words.count(word) > 0; }))
      recipes.push_back(&recipe);
  return recipes;
}

}  // namespace gpuwright::doctor
