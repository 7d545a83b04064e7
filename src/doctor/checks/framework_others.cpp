// fw.tensorflow and fw.jax: whether the packages that bring CUDA to them are there.
#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/software_advice.h"

namespace gpuwright::doctor {
namespace {

constexpr std::size_t kMostMetadata = 256 << 10;

Problem& tell(Outcome& outcome, std::string_view id, const PythonEnvironment& environment, const Package& package) {
  Problem& problem = outcome.wrong(id);
  problem.fact("environment", environment.prefix).fact("python", environment.python());
  problem.version("package_version", package.version).seen(package.folder, package.version);
  return problem;
}

// Wheels of the extra "and-cuda" that are missing; TensorFlow then looks for the same libraries in the system.
void check_tensorflow(const Machine& machine, const PythonEnvironment& environment, Outcome& outcome) {
  const Package& tensorflow = *environment.find("tensorflow");
  const auto metadata = machine.host().text(tensorflow.folder + "/METADATA", kMostMetadata);
  if (!metadata) return;
  std::vector<std::string> missing;
  for (const Requirement& requirement : requirements_in(*metadata)) {
    if (requirement.marker.find("and-cuda") == std::string::npos || !requirement.name.starts_with("nvidia-")) continue;
    if (environment.find(requirement.name) == nullptr) missing.push_back(requirement.name);
  }
  if (missing.empty()) return;
  const auto& loader = machine.software().loader();
  const auto* release = machine.compat().tensorflow_release(tensorflow.version);
  const std::string cudnn = release == nullptr ? "" : release->cudnn.substr(0, release->cudnn.find('.'));
  if (!cudnn.empty() && loader.find("libcudnn.so." + cudnn)) return;  // the system has them
  Problem& problem = tell(outcome, "fw.tensorflow", environment, tensorflow);
  for (const std::string& name : missing) problem.item("wheel", name);
}

const Package* plugin_of(const PythonEnvironment& environment) {
  for (const char* name : {"jax-cuda13-plugin", "jax-cuda12-plugin", "jax-cuda11-plugin"})
    if (const Package* plugin = environment.find(name)) return plugin;
  return nullptr;
}

// Before 0.4.26 the wheel of jaxlib held CUDA itself: "0.4.25+cuda12.cudnn89".
void check_jax(const Machine& machine, const PythonEnvironment& environment, Outcome& outcome) {
  const Package* jaxlib = environment.find("jaxlib");
  if (jaxlib == nullptr || local_tag(jaxlib->version).starts_with("cuda")) return;
  const Package* plugin = plugin_of(environment);
  const auto driver = driver_for_programs(machine);
  if (plugin == nullptr) {
    if (environment.find("jax-rocm60-plugin") != nullptr || environment.find("jax-rocm7-plugin") != nullptr) return;
    Problem& problem = tell(outcome, "fw.jax", environment, *jaxlib);
    const bool thirteen =
        driver && meets(*driver, ">=" + machine.compat().driver_floor("13.0").value_or("580.65.06")).value_or(false);
    bool old = false;  // CUDA 13 has left Maxwell, Pascal and Volta behind
    for (const std::string& capability : nvidia_capabilities(machine)) old = old || *sm_of(capability) < 75;
    problem.fact("extra", thirteen && !old ? "cuda13" : "cuda12");
  } else if (minor_version(plugin->version) != minor_version(jaxlib->version) ||
             public_version(plugin->version) != public_version(jaxlib->version)) {
    Problem& problem = tell(outcome, "fw.jax.plugin", environment, *jaxlib);
    problem.fact("plugin", plugin->name)
        .version("plugin_version", plugin->version)
        .seen(plugin->folder, plugin->version);
    problem.fact("extra", plugin->name.substr(4, 6));  // jax-cuda12-plugin
  }
}

template <class Check>
Outcome in_environments(const Machine& machine, std::string_view package, Check check) {
  if (!machine.has_nvidia()) return not_applicable("no NVIDIA GPU");
  const auto having = environments_with(machine.software().environments(), package);
  if (having.empty()) return not_applicable(fmt::format("no {} is installed", package));
  Outcome outcome = fine();
  for (const PythonEnvironment* environment : having) check(machine, *environment, outcome);
  return outcome;
}

}  // namespace

Outcome check_fw_tensorflow(const Machine& machine) {
  return in_environments(machine, "tensorflow", check_tensorflow);
}
Outcome check_fw_jax(const Machine& machine) {
  return in_environments(machine, "jax", check_jax);
}

}  // namespace gpuwright::doctor
