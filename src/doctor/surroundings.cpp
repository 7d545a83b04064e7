#include "doctor/surroundings.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace gpuwright::doctor {
namespace {

bool holds(const std::optional<std::string>& text, std::string_view part) {
  return text && text->find(part) != std::string::npos;
}

// The first mount whose target is "/": an overlay made by a container engine names its folder.
std::string container_by_mounts(const Host& host) {
  const auto mounts = host.text("/proc/mounts");
  if (!mounts) return {};
  for (const std::string_view line : split(*mounts, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() < 4 || words[1] != "/" || words[2] != "overlay") continue;
    for (const std::string_view engine : {"docker", "containerd", "containers", "kubelet"})
      if (words[3].find(engine) != std::string_view::npos)
        return std::string(engine == "containers" ? "podman" : engine == "kubelet" ? "kubernetes" : engine);
  }
  return {};
}

std::string container_by_cgroup(const Host& host) {
  const auto cgroup = host.text("/proc/1/cgroup");
  for (const std::string_view mark : {"kubepods", "docker", "containerd", "libpod", "lxc"})
    if (holds(cgroup, mark)) return std::string(mark == "kubepods" ? "kubernetes" : mark == "libpod" ? "podman" : mark);
  return {};
}

std::optional<std::string> container(const Host& host) {
  if (host.variable("KUBERNETES_SERVICE_HOST") || host.exists("/var/run/secrets/kubernetes.io")) return "kubernetes";
  if (host.exists("/.dockerenv")) return "docker";
  if (host.exists("/run/.containerenv")) return "podman";
  if (host.exists("/singularity") || host.variable("SINGULARITY_CONTAINER") || host.variable("APPTAINER_CONTAINER"))
    return "apptainer";
  if (const auto told = host.value("/run/systemd/container")) return *told;
  if (std::string name = container_by_mounts(host); !name.empty()) return name;
  if (std::string name = container_by_cgroup(host); !name.empty()) return name;
  if (!host.exists("/proc/mounts") && !host.exists("/proc/1/cgroup") && !host.exists("/proc/modules"))
    return std::nullopt;
  return "";
}

bool virtual_machine(const Host& host) {
  const auto vendor = host.value("/sys/class/dmi/id/sys_vendor"),
             product = host.value("/sys/class/dmi/id/product_name");
  for (const std::string_view name : {"QEMU", "KVM", "VMware", "Xen", "innotek", "Virtual Machine", "Google Compute",
                                      "OpenStack", "Bochs", "Parallels"})
    if (holds(vendor, name) || holds(product, name)) return true;
  // Amazon's bare machines say so: "i3.metal".
  if (holds(vendor, "Amazon EC2")) return !holds(product, ".metal");
  return false;
}

}  // namespace

Surroundings read_surroundings(const Host& host) {
  Surroundings around;
  around.container = container(host);
  const auto version = host.text("/proc/version");
  const auto release = host.kernel_release();
  around.wsl = holds(version, "microsoft") || holds(version, "Microsoft") || holds(release, "microsoft");
  const auto model = host.text("/proc/device-tree/compatible");
  around.tegra = host.exists("/etc/nv_tegra_release") || holds(model, "nvidia,tegra");
  around.virtual_machine = virtual_machine(host);
  return around;
}

}  // namespace gpuwright::doctor
