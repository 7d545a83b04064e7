// Kubernetes and Slurm on a node, by the files that their agents keep.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "doctor/checks/checks.h"

namespace gpuwright::doctor {
namespace {

using device::Vendor;

constexpr std::string_view kResource = "nvidia.com/gpu";

std::optional<Outcome> no_kubernetes(const Machine& machine) {
  if (machine.gpus_of(Vendor::nvidia).empty()) return not_applicable("no NVIDIA GPU");
  if (machine.surroundings().in_container()) return not_applicable("in a container");
  if (!machine.host().is_directory("/var/lib/kubelet")) return not_applicable("no kubelet");
  return std::nullopt;
}

Outcome check_runtime(const Machine& machine) {
  if (auto outcome = no_kubernetes(machine)) return *outcome;
  const Host& host = machine.host();
  std::vector<std::string> files = {"/etc/containerd/config.toml",
                                    "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
                                    "/var/lib/rancher/rke2/agent/etc/containerd/config.toml"};
  for (const std::string& name : host.names("/etc/containerd/conf.d"))
    files.push_back("/etc/containerd/conf.d/" + name);
  for (const std::string& name : host.names("/etc/crio/crio.conf.d")) files.push_back("/etc/crio/crio.conf.d/" + name);
  std::string read;
  for (const std::string& file : files) {
    const auto text = host.text(file, 1 << 20);
    if (!text) continue;
    if (text->find("nvidia") != std::string::npos) return fine(file);
    if (read.empty()) read = file;
  }
  if (read.empty()) return unknown("no configuration of containerd or CRI-O can be read");
  Outcome outcome;
  outcome.wrong("k8s.runtime").seen(read, "names no nvidia runtime");
  return outcome;
}

// The kubelet keeps what device plugins registered: {"Data": {"RegisteredDevices": {"nvidia.com/gpu": [...]}}}.
Outcome check_plugin(const Machine& machine) {
  if (auto outcome = no_kubernetes(machine)) return *outcome;
  const std::string path = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";
  const auto text = machine.host().text(path, 4 << 20);
  if (!text) return unknown(path + " cannot be read");
  const auto checkpoint = parse_json(*text, path);
  const Json* data = checkpoint ? checkpoint->find("Data") : nullptr;
  const Json* devices = data == nullptr ? nullptr : data->find("RegisteredDevices");
  if (devices == nullptr) return unknown(path + " is not understood");
  std::size_t registered = 0;
  for (const auto& [name, list] : devices->members())
    if (name == kResource || name.starts_with("nvidia.com/mig-")) registered += list.items().size();
  const std::size_t here = machine.gpus_of(Vendor::nvidia).size();
  Outcome outcome = fine(fmt::format("{} registered", registered));
  if (registered == 0)
    outcome.wrong("k8s.plugin").seen(path, "no nvidia.com/gpu is registered");
  else if (registered < here)
    outcome.wrong("k8s.count")
        .fact("registered", static_cast<std::int64_t>(registered))
        .fact("on_bus", static_cast<std::int64_t>(here))
        .seen(path, fmt::format("{} of {} GPUs", registered, here));
  return outcome;
}

// "kubectl get node NAME -o json", where someone captured it.
Outcome check_node(const Machine& machine) {
  const Json* node = machine.host().captured("kubernetes_node");
  if (node == nullptr) return not_applicable("the API server is not asked");
  const Json* spec = node->find("spec");
  const Json* status = node->find("status");
  const Json* allocatable = status == nullptr ? nullptr : status->find("allocatable");
  Outcome outcome = fine();
  if (spec != nullptr && spec->find("unschedulable") != nullptr &&
      spec->find("unschedulable")->as_bool().value_or(false))
    outcome.wrong("k8s.cordoned").seen("spec.unschedulable", "true");
  if (allocatable == nullptr) return outcome;
  const Json* count = allocatable->find(kResource);
  const std::string text = count != nullptr && count->is_string() ? std::string(*count->as_string()) : "0";
  if (text == "0") outcome.wrong("k8s.allocatable").seen("status.allocatable", "nvidia.com/gpu: " + text);
  return outcome;
}

std::optional<std::string> slurm_file(const Host& host, std::string_view name) {
  for (const char* folder : {"/etc/slurm/", "/etc/slurm-llnl/", "/usr/local/etc/"})
    if (host.exists(folder + std::string(name))) return folder + std::string(name);
  return std::nullopt;
}

// A setting's value, in whatever case it is written; nothing where it is not set.
std::optional<std::string> setting(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    const std::string plain(trim(line.substr(0, line.find('#'))));
    if (starts_with_ignoring_case(plain, std::string(key) + "=")) return plain.substr(key.size() + 1);
  }
  return std::nullopt;
}

Outcome check_slurm(const Machine& machine) {
  const Host& host = machine.host();
  if (machine.gpus_of(Vendor::nvidia).empty()) return not_applicable("no NVIDIA GPU");
  const auto main_file = slurm_file(host, "slurm.conf");
  if (!main_file) return not_applicable("no slurm.conf");
  const auto text = host.text(*main_file, 1 << 20);
  if (!text) return unknown(*main_file + " cannot be read");
  Outcome outcome = fine();
  const auto types = setting(*text, "GresTypes");
  if (!types || lower(*types).find("gpu") == std::string::npos) {
    outcome.wrong("slurm.types")
        .fact("file", *main_file)
        .seen(*main_file, types ? "GresTypes=" + *types : "no GresTypes");
    return outcome;
  }
  const auto gres_file = slurm_file(host, "gres.conf");
  const auto gres = gres_file ? host.text(*gres_file, 1 << 20) : std::nullopt;
  const std::string low = gres ? lower(*gres) : "";
  if (low.find("autodetect=nv") == std::string::npos && low.find("name=gpu") == std::string::npos)
    outcome.wrong("slurm.gres")
        .seen(gres_file.value_or("/etc/slurm/gres.conf"), gres ? "names no GPU" : "is not there");
  return outcome;
}

// How many device files a line of gres.conf names: "File=/dev/nvidia[0-3,6]" are five.
std::int64_t files_named(std::string_view value) {
  const std::size_t open = value.find('['), close = value.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return 1;
  std::int64_t count = 0;
  for (const std::string_view part : split(value.substr(open + 1, close - open - 1), ',')) {
    const std::size_t dash = part.find('-');
    const auto first = to_integer(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : to_integer(part.substr(dash + 1));
    if (first && last && *last >= *first && *last - *first < 1024) count += *last - *first + 1;
  }
  return count;
}

Outcome check_slurm_count(const Machine& machine) {
  const Host& host = machine.host();
  const auto file = slurm_file(host, "gres.conf");
  const auto text = file ? host.text(*file, 1 << 20) : std::nullopt;
  if (!text) return not_applicable("no gres.conf");
  const auto name = host.value("/proc/sys/kernel/hostname");
  std::int64_t configured = 0, number = 0;
  Evidence evidence;
  for (const std::string_view line : split(*text, '\n')) {
    ++number;
    const std::string plain(trim(line.substr(0, line.find('#'))));
    const std::string low = lower(plain);
    const std::size_t at = low.find("file=/dev/nvidia");
    // A line for other nodes says so; of a list of hosts we cannot tell.
    const std::size_t node = low.find("nodename=");
    if (at == std::string::npos) continue;
    if (node != std::string::npos && (!name || low.substr(node + 9, name->size()) != lower(*name))) continue;
    configured += files_named(std::string_view(plain).substr(at, plain.find(' ', at) - at));
    evidence = {*file, number, plain, 1};
  }
  const auto here = static_cast<std::int64_t>(machine.gpus_of(Vendor::nvidia).size());
  if (configured == 0 || !machine.pci_gpus()) return not_applicable("no device files are configured");
  if (configured <= here) return fine(fmt::format("{} configured", configured));
  Outcome outcome;
  Problem& problem = outcome.wrong("slurm.count").fact("configured", configured).fact("on_bus", here);
  problem.evidence.push_back(evidence);
  return outcome;
}

Outcome check_slurm_job(const Machine& machine) {
  const Host& host = machine.host();
  if (!host.variable("SLURM_JOB_ID")) return not_applicable("not in a Slurm job");
  if (!machine.has_nvidia()) return not_applicable("no NVIDIA GPU");
  const auto visible = host.variable("CUDA_VISIBLE_DEVICES");
  if (host.variable("SLURM_JOB_GPUS") || host.variable("SLURM_STEP_GPUS")) return fine();
  if (visible && *visible != "NoDevFiles" && !visible->empty()) return fine(*visible);
  Outcome outcome;
  outcome.wrong("slurm.job").seen("SLURM_JOB_GPUS", "is not set");
  return outcome;
}

}  // namespace

std::vector<Check> cluster_checks() {
  return {{"k8s.runtime", Layer::cluster, check_runtime},     {"k8s.plugin", Layer::cluster, check_plugin},
          {"k8s.node", Layer::cluster, check_node},           {"slurm.gres", Layer::cluster, check_slurm},
          {"slurm.count", Layer::cluster, check_slurm_count}, {"slurm.job", Layer::container, check_slurm_job}};
}

}  // namespace gpuwright::doctor
