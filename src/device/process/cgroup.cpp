// The names that runtimes give to cgroups:
//   docker      /docker/ID                       /system.slice/docker-ID.scope            (cgroupfs, systemd driver)
//   containerd  /kubepods/CLASS/podUID/ID        ...-podU_I_D.slice/cri-containerd-ID.scope,
//   /system.slice/nerdctl-ID.scope cri-o       /kubepods/CLASS/podUID/crio-ID   .../crio-ID.scope; crio-conmon-ID is
//   its monitor, not the container podman      /libpod_parent/libpod-ID /machine.slice/libpod-ID.scope[/container]
//   Slurm       /slurm[_HOST]/uid_U/job_J/step_S /system.slice/[HOST_]slurmstepd.scope/job_J/step_S/...     (v1, v2)
// Sources: Kubernetes' "cgroup drivers" (kubelet/cm: podN.slice with '-' written as '_'), OCI runtime-spec linux
// cgroupsPath with runc's systemd driver (slice:prefix:name), cri-o and podman documentation, Slurm's cgroup/v1 and
// cgroup/v2 plugin pages.
#include "device/process/cgroup.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"

namespace gpuwright::device {
namespace {

constexpr std::size_t kMostLines = 64;       // v1 has about 13 controllers
constexpr std::size_t kMostComponents = 64;  // nested cgroups, podman in a pod

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_container_id(std::string_view text) {
  constexpr std::size_t kIdDigits = 64;
  return text.size() == kIdDigits && is_hex(text);
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "f4c0b9d5_1c3e_4a3a_9f57_0e1d8a6c2b11" (a slice's name) or with '-' (cgroupfs); static pods are named by a hash.
std::string pod_uid_of(std::string_view text) {
  std::string uid(text);
  std::replace(uid.begin(), uid.end(), '_', '-');
  constexpr std::size_t kUuid = 36, kHash = 32;
  if (uid.size() == kHash && is_hex(uid)) return uid;
  if (uid.size() != kUuid) return {};
  for (std::size_t i = 0; i < uid.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash != (uid[i] == '-') || (!dash && !is_hex(uid.substr(i, 1)))) return {};
  }
  return uid;
}

std::string_view without_suffix(std::string_view text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return text;
}

struct Prefix {
  std::string_view text, runtime;
};
constexpr std::array kPrefixes = {
    Prefix{"docker-", "docker"},      Prefix{"cri-containerd-", "containerd"},
    Prefix{"nerdctl-", "containerd"}, Prefix{"crio-", "cri-o"},
    Prefix{"libpod-", "podman"},
};

void read_pod(std::string_view component, Belonging& belonging) {
  component = without_suffix(component, ".slice");
  const std::size_t pod = component.starts_with("pod") ? 0 : component.rfind("-pod");
  if (pod == std::string_view::npos) return;
  const std::string uid = pod_uid_of(component.substr(component.starts_with("pod") ? 3 : pod + 4));
  if (!uid.empty()) belonging.pod_uid = uid;
}

bool read_container(std::string_view component, std::string_view parent, bool in_pod, Belonging& belonging) {
  const std::string_view name = without_suffix(component, ".scope");
  for (const Prefix& prefix : kPrefixes) {
    if (!name.starts_with(prefix.text) || !is_container_id(name.substr(prefix.text.size()))) continue;
    belonging.container = name.substr(prefix.text.size());
    belonging.runtime = prefix.runtime;
    return true;
  }
  if (is_container_id(component)) {
    belonging.container = component;
    belonging.runtime = parent == "docker" ? "docker" : in_pod ? "containerd" : "";
    return true;
  }
  constexpr std::string_view kLxc = "lxc.payload.", kMachine = "machine-";
  if (component.starts_with(kLxc) || parent == "lxc") {
    belonging.container = component.starts_with(kLxc) ? component.substr(kLxc.size()) : component;
    belonging.runtime = "lxc";
    return true;
  }
  // A virtual machine (machine-qemu\x2d1...) is no container.
  if (parent == "machine.slice" && component.starts_with(kMachine) && component.ends_with(".scope") &&
      !component.starts_with("machine-qemu")) {
    belonging.container = name.substr(kMachine.size());
    belonging.runtime = "systemd-nspawn";
    return true;
  }
  return false;
}

// A hand-made cgroup may be called job_7: Slurm's has slurm above it.
void read_slurm(std::string_view component, bool under_slurm, Belonging& belonging) {
  if (!under_slurm) return;
  constexpr std::string_view kJob = "job_", kStep = "step_";
  if (component.starts_with(kJob) && is_number(component.substr(kJob.size())))
    belonging.slurm_job = component.substr(kJob.size());
  else if (component.starts_with(kStep) && component.size() > kStep.size() && !belonging.slurm_job.empty() &&
           belonging.slurm_job.find('.') == std::string::npos)
    belonging.slurm_job += "." + std::string(component.substr(kStep.size()));
}

void read_path(std::string_view path, Belonging& belonging) {
  std::vector<std::string_view> components = split(path, '/');
  if (components.size() > kMostComponents) components.resize(kMostComponents);
  std::string_view parent;
  bool under_slurm = false, in_container = false;
  for (const std::string_view component : components) {
    if (component.empty()) continue;
    if (component.starts_with("slurm") || component.find("slurmstepd") != std::string_view::npos) under_slurm = true;
    read_slurm(component, under_slurm, belonging);
    read_pod(component, belonging);
    const bool container = read_container(component, parent, !belonging.pod_uid.empty(), belonging);
    in_container = in_container || container;
    // The innermost service; of a scope only where no service is in it. Units inside a container are not the host's.
    if (!in_container && component.ends_with(".service")) belonging.unit = component;
    if (!in_container && component.ends_with(".scope")) belonging.unit = component;
    parent = component;
  }
}

}  // namespace

Belonging belonging_of(std::string_view cgroup_text) {
  Belonging belonging;
  std::vector<std::string_view> lines = split(cgroup_text, '\n');
  if (lines.size() > kMostLines) lines.resize(kMostLines);
  for (const std::string_view line : lines) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    Belonging of_line;
    read_path(trim(line.substr(second + 1)), of_line);
    // A controller that is not delegated stays at an outer cgroup: what a line does not tell, another may.
    if (belonging.container.empty() && !of_line.container.empty()) {
      belonging.container = of_line.container;
      belonging.runtime = of_line.runtime;
    }
    if (belonging.pod_uid.empty()) belonging.pod_uid = of_line.pod_uid;
    if (belonging.slurm_job.size() < of_line.slurm_job.size()) belonging.slurm_job = of_line.slurm_job;
    if (belonging.unit.empty()) belonging.unit = of_line.unit;
  }
  return belonging;
}

}  // namespace gpuwright::device
