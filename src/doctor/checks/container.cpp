// Containers, from both sides: whether this one was given its GPU, and whether this host can give one to any.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/rules/facts.h"
#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/checks/container_host.h"

namespace gpuwright::doctor {
namespace {

using device::Vendor;

bool has_nvidia_node(const Host& host) {
  for (const std::string& name : host.names("/dev"))
    if (name == "nvidiactl" || name == "nvidia0" || name == "nvidia-uvm" || name == "dxg") return true;
  return false;
}

Outcome check_inside(const Machine& machine) {
  const Surroundings& around = machine.surroundings();
  if (!around.container) return unknown("it is not known whether this is a container");
  if (!around.in_container()) return not_applicable("not in a container");
  if (!machine.has_nvidia() && !around.wsl) return not_applicable("no NVIDIA GPU");
  const Host& host = machine.host();
  const auto visible = host.variable("NVIDIA_VISIBLE_DEVICES");
  Outcome outcome = fine(*around.container);
  if (!has_nvidia_node(host)) {
    Problem& problem = outcome.wrong("ct.inside").fact("container_kind", *around.container);
    problem.seen("/dev", "no nvidia* nodes");
    if (*around.container == "kubernetes") problem.fact("kubernetes", "yes");
    if (*around.container == "podman") problem.fact("podman", "yes");
    if (visible && (visible->empty() || *visible == "void" || *visible == "none"))
      problem.fact("visible", visible->empty() ? "(empty)" : *visible).seen("NVIDIA_VISIBLE_DEVICES", *visible);
    return outcome;
  }
  if (!machine.nvidia().cuda_libraries.empty()) return outcome;
  const auto capabilities = host.variable("NVIDIA_DRIVER_CAPABILITIES");
  Problem& problem = outcome.wrong("ct.capabilities").seen("/usr/lib", "no libcuda.so.*");
  if (capabilities) problem.fact("capabilities", *capabilities).seen("NVIDIA_DRIVER_CAPABILITIES", *capabilities);
  return outcome;
}

// "cuda>=12.4 brand=tesla,driver>=470,driver<471 ...": words are alternatives, parts between commas belong together.
// The first word that asks for CUDA is what the image was made for.
Outcome check_required(const Machine& machine) {
  const auto wish = machine.host().variable("NVIDIA_REQUIRE_CUDA");
  if (!wish) return not_applicable("NVIDIA_REQUIRE_CUDA is not set");
  if (machine.host().variable("NVIDIA_DISABLE_REQUIRE")) return not_applicable("NVIDIA_DISABLE_REQUIRE is set");
  const auto cuda = machine.driver_cuda();
  const auto driver = machine.nvidia().version();
  if (!cuda) return unknown("the driver's CUDA version is not known");
  for (const std::string_view word : split(*wish, ' ')) {
    if (!word.starts_with("cuda>=")) continue;
    const std::string needed(word.substr(6, word.find(',') == std::string_view::npos ? word.npos : word.find(',') - 6));
    if (compare_versions(*cuda, needed) >= 0) return fine(fmt::format("needs {}, has {}", needed, *cuda));
    // Within one major version an older driver serves, too: images say so by further words for its branch.
    if (driver && wish->find(fmt::format("driver>={}", driver->substr(0, driver->find('.')))) != std::string::npos)
      return fine(fmt::format("needs {}, driver {} is allowed", needed, *driver));
    Outcome outcome;
    outcome.wrong("ct.require")
        .version("needed", needed)
        .version("cuda_version", *cuda)
        .version("driver_version", driver.value_or(""))
        .seen("NVIDIA_REQUIRE_CUDA", word);
    return outcome;
  }
  return fine();
}

std::optional<Outcome> no_host(const Machine& machine) {
  if (machine.surroundings().in_container()) return not_applicable("this is a container");
  if (machine.gpus_of(Vendor::nvidia).empty()) return not_applicable("no NVIDIA GPU");
  return std::nullopt;
}

Outcome check_toolkit(const Machine& machine) {
  if (auto outcome = no_host(machine)) return *outcome;
  const Host& host = machine.host();
  if (!has_docker(host) && !host.exists("/usr/bin/podman")) return not_applicable("neither Docker nor Podman");
  if (has_container_toolkit(host)) return fine();
  Outcome outcome;
  outcome.wrong("ct.toolkit")
      .fact("engine", has_docker(host) ? "docker" : "podman")
      .seen("/usr/bin/nvidia-container-runtime", "is not there");
  return outcome;
}

Outcome check_snap(const Machine& machine) {
  if (auto outcome = no_host(machine)) return *outcome;
  Outcome outcome = fine();
  if (machine.host().is_directory("/snap/docker")) outcome.wrong("ct.snap").seen("/snap/docker");
  return outcome;
}

Outcome check_docker_config(const Machine& machine) {
  if (auto outcome = no_host(machine)) return *outcome;
  const Host& host = machine.host();
  if (!has_docker(host)) return not_applicable("no Docker");
  const std::string path = "/etc/docker/daemon.json";
  const auto text = host.text(path);
  if (!text) return host.access(path) == Access::absent ? fine("its defaults") : unknown(path + " cannot be read");
  Outcome outcome = fine();
  const auto config = parse_json(*text, path);
  if (!config) {
    outcome.wrong("ct.daemon_json").seen(path, config.error().what);
    return outcome;
  }
  const Json* runtimes = config->find("runtimes");
  const Json* runtime = runtimes == nullptr ? nullptr : runtimes->find("nvidia");
  const Json* program = runtime == nullptr ? nullptr : runtime->find("path");
  if (program == nullptr || !program->is_string()) return outcome;
  const std::string file(*program->as_string());
  if (file.starts_with('/') && host.access(file) == Access::absent)
    outcome.wrong("ct.runtime_path").fact("program", file).seen(path, "runtimes.nvidia.path: " + file);
  return outcome;
}

// A CDI file lists the driver's libraries with the version in their names, and outlives the driver.
Outcome check_cdi(const Machine& machine) {
  if (auto outcome = no_host(machine)) return *outcome;
  const auto version = machine.nvidia().module_version;
  if (!version) return unknown("the driver's version is not known");
  Outcome outcome = fine();
  int files = 0;
  for (const char* folder : {"/etc/cdi", "/var/run/cdi"})
    for (const std::string& name : machine.host().names(folder)) {
      const std::string path = std::string(folder) + "/" + name;
      const auto text = machine.host().text(path, 1 << 20);
      const std::size_t at = text ? text->find("libcuda.so.") : std::string::npos;
      if (at == std::string::npos) continue;
      ++files;
      const std::size_t begin = at + 11;
      const std::size_t end = text->find_first_not_of("0123456789.", begin);
      const std::string listed = text->substr(begin, end == std::string::npos ? end : end - begin);
      if (listed.find('.') == std::string::npos || listed == *version) continue;
      outcome.wrong("ct.cdi")
          .fact("file", path)
          .version("listed_version", listed)
          .version("driver_version", *version)
          .seen(path, "libcuda.so." + listed);
    }
  return files == 0 ? not_applicable("no CDI files") : outcome;
}

// With systemd's cgroups a "daemon-reload" takes from a running container what has no /dev/char link.
Outcome check_char_links(const Machine& machine) {
  if (auto outcome = no_host(machine)) return *outcome;
  const Host& host = machine.host();
  if (!has_docker(host) || !has_container_toolkit(host)) return not_applicable("no Docker with NVIDIA's toolkit");
  if (!host.is_directory("/dev/char")) return unknown("/dev/char cannot be listed");
  if (!host.exists("/sys/fs/cgroup/cgroup.controllers")) return not_applicable("cgroup v1");
  for (const std::string& name : host.names("/dev/char", 8192))
    if (name.starts_with("195:")) return fine();
  Outcome outcome;
  outcome.wrong("ct.cgroup").seen("/dev/char", "no link 195:0 to /dev/nvidia0");
  return outcome;
}

}  // namespace

bool has_docker(const Host& host) {
  return host.exists("/usr/bin/dockerd") || host.exists("/usr/local/bin/dockerd") || host.is_directory("/snap/docker");
}

bool has_container_toolkit(const Host& host) {
  for (const char* path : {"/usr/bin/nvidia-container-runtime", "/usr/bin/nvidia-ctk",
                           "/usr/local/nvidia/toolkit/nvidia-ctk", "/usr/bin/nvidia-container-runtime-hook"})
    if (host.exists(path)) return true;
  return false;
}

std::vector<Check> container_checks() {
  return {{"ct.inside", Layer::container, check_inside},        {"ct.require", Layer::container, check_required},
          {"ct.toolkit", Layer::container, check_toolkit},      {"ct.snap", Layer::container, check_snap},
          {"ct.docker", Layer::container, check_docker_config}, {"ct.cdi", Layer::container, check_cdi},
          {"ct.cgroup", Layer::container, check_char_links}};
}

}  // namespace gpuwright::doctor
