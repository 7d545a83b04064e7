// doctor --perf: what makes a machine that works slower than it has to be. The order of the table is that of the gain
// that one may hope for.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/checks/names.h"

namespace gpuwright::doctor {
namespace {

using device::Gpu;

std::optional<Outcome> not_told(const Machine& machine) {
  if (machine.snapshot() == nullptr) return unknown("the drivers were not asked");
  if (machine.snapshot()->gpus.empty()) return not_applicable("no driver tells of a GPU");
  return std::nullopt;
}

// What the driver says of the link, where there is no sysfs.
Outcome check_link(const Machine& machine) {
  if (auto outcome = not_told(machine)) return *outcome;
  Outcome outcome = fine();
  bool known = false;
  for (const Gpu& gpu : machine.snapshot()->gpus) {
    if (!gpu.pcie_width || !gpu.pcie_width_max) continue;
    known = true;
    if (*gpu.pcie_width < *gpu.pcie_width_max)
      outcome.wrong("perf.link")
          .item("gpus", name_of(gpu))
          .fact("link_width", *gpu.pcie_width)
          .fact("link_width_max", *gpu.pcie_width_max)
          .seen("PCIe link", fmt::format("x{} of x{}", *gpu.pcie_width, *gpu.pcie_width_max));
  }
  return known ? outcome : unknown("the link's width is not told");
}

Outcome check_power(const Machine& machine) {
  if (auto outcome = not_told(machine)) return *outcome;
  Outcome outcome = fine();
  bool known = false;
  constexpr double kLowered = 0.95;
  for (const Gpu& gpu : machine.snapshot()->gpus) {
    if (!gpu.power_limit || !gpu.power_limit_default || gpu.power_limit_default->value <= 0) continue;
    known = true;
    if (gpu.power_limit->value < kLowered * gpu.power_limit_default->value)
      outcome.wrong("perf.power")
          .item("gpus", name_of(gpu))
          .fact("index", gpu.vendor_index)
          .fact("limit_watts", static_cast<std::int64_t>(gpu.power_limit->value))
          .fact("default_watts", static_cast<std::int64_t>(gpu.power_limit_default->value))
          .seen("power limit",
                fmt::format("{:.0f} W, by default {:.0f} W", gpu.power_limit->value, gpu.power_limit_default->value));
  }
  return known ? outcome : unknown("the driver does not tell the power limits");
}

Outcome check_clocks(const Machine& machine) {
  if (auto outcome = not_told(machine)) return *outcome;
  Outcome outcome = fine();
  bool known = false;
  for (const Gpu& gpu : machine.snapshot()->gpus) {
    if (!gpu.throttle_reasons) continue;
    known = true;
    if ((gpu.throttle_reasons->bits & device::throttle::kApplicationClocks) != 0)
      outcome.wrong("perf.clocks")
          .item("gpus", name_of(gpu))
          .fact("index", gpu.vendor_index)
          .seen("clocks", "held by application clocks");
  }
  return known ? outcome : unknown("the driver does not tell why clocks are low");
}

// BAR1 of 256 MiB on a card of many GiB: the firmware did not resize it.
Outcome check_bar(const Machine& machine) {
  if (auto outcome = not_told(machine)) return *outcome;
  Outcome outcome = fine();
  bool known = false;
  for (const Gpu& gpu : machine.snapshot()->gpus) {
    if (!gpu.bar1_total || !gpu.memory_total) continue;
    known = true;
    if (gpu.bar1_total->count <= (256 << 20) && gpu.memory_total->count > (std::int64_t{4} << 30))
      outcome.wrong("perf.bar")
          .item("gpus", name_of(gpu))
          .fact("bar_bytes", *gpu.bar1_total)
          .seen("BAR1", to_string(*gpu.bar1_total));
  }
  return known ? outcome : unknown("the driver does not tell the size of BAR1");
}

// CPUs of "0-15,32-47".
std::set<std::int64_t> cpus_of(std::string_view list) {
  std::set<std::int64_t> cpus;
  for (const std::string_view part : split(trim(list), ',')) {
    const std::size_t dash = part.find('-');
    const auto first = to_integer(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : to_integer(part.substr(dash + 1));
    for (auto cpu = first.value_or(1); first && last && cpu <= *last && cpus.size() < 8192; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

// Of a machine with several NUMA nodes: whether this process may run on the node of each GPU.
Outcome check_numa(const Machine& machine) {
  const Host& host = machine.host();
  const auto nodes = host.value("/sys/devices/system/node/online");
  if (!nodes) return unknown("the NUMA nodes cannot be listed");
  if (cpus_of(*nodes).size() < 2) return not_applicable("one NUMA node");
  const auto status = host.text("/proc/self/status");
  std::set<std::int64_t> allowed;
  if (status)
    for (const std::string_view line : split(*status, '\n'))
      if (line.starts_with("Cpus_allowed_list:")) allowed = cpus_of(line.substr(18));
  Outcome outcome = fine();
  for (const PciGpu& gpu : machine.gpus()) {
    const auto node = host.integer(gpu.path("numa_node"));
    const auto near = host.value(gpu.path("local_cpulist"));
    if (node && *node < 0) {
      outcome.wrong("perf.numa_unknown").item("gpus", gpu.name).seen(gpu.path("numa_node"), "-1");
      continue;
    }
    if (!near || allowed.empty()) continue;
    const auto cpus = cpus_of(*near);
    if (std::none_of(cpus.begin(), cpus.end(), [&](std::int64_t cpu) { return allowed.contains(cpu); }))
      outcome.wrong("perf.numa")
          .item("gpus", gpu.name)
          .fact("cpus", *near)
          .fact("node", node.value_or(0))
          .seen(gpu.path("local_cpulist"), *near);
  }
  return outcome;
}

Outcome check_governor(const Machine& machine) {
  const Host& host = machine.host();
  const std::string folder = "/sys/devices/system/cpu/cpu0/cpufreq/";
  const auto governor = host.value(folder + "scaling_governor");
  if (!governor) return unknown("the CPU's governor is not told");
  // intel_pstate and amd-pstate-epp call what is quick enough "powersave"; their preference counts.
  const auto driver = host.value(folder + "scaling_driver").value_or("");
  const auto preference = host.value(folder + "energy_performance_preference");
  const bool slow = driver == "intel_pstate" || driver.starts_with("amd-pstate-epp")
                        ? preference && (*preference == "power" || *preference == "balance_power")
                        : *governor == "powersave";
  if (!slow) return fine(*governor);
  Outcome outcome;
  outcome.wrong("perf.governor")
      .fact("governor", *governor)
      .seen(folder + "scaling_governor", *governor + (preference ? ", " + *preference : ""));
  return outcome;
}

// cgroup v2's "max 100000" or "400000 100000": microseconds of CPU in each period.
Outcome check_cpus(const Machine& machine) {
  if (!machine.surroundings().in_container()) return not_applicable("not in a container");
  const auto text = machine.host().value("/sys/fs/cgroup/cpu.max");
  if (!text) return unknown("/sys/fs/cgroup/cpu.max cannot be read");
  const auto words = split(*text, ' ');
  const auto quota = to_integer(words.front()), period = words.size() > 1 ? to_integer(words[1]) : std::nullopt;
  if (!quota || !period || *period <= 0) return fine("no limit");
  const std::int64_t cpus = *quota / *period;
  const auto gpus = static_cast<std::int64_t>(std::max<std::size_t>(1, machine.gpus().size()));
  constexpr std::int64_t kWanted = 4;
  Outcome outcome = fine(fmt::format("{} CPUs", cpus));
  if (cpus < kWanted)
    outcome.wrong("perf.cpus").fact("cpus", cpus).fact("gpus_here", gpus).seen("/sys/fs/cgroup/cpu.max", *text);
  return outcome;
}

struct Mount {
  std::string target, type, source;
};

// The mount that holds the path: the longest target that is a prefix of it, the last of equals.
std::optional<Mount> mount_of(const Host& host, const std::string& path) {
  const auto mounts = host.text("/proc/mounts", 1 << 20);
  if (!mounts) return std::nullopt;
  std::optional<Mount> best;
  for (const std::string_view line : split(*mounts, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() < 3) continue;
    const std::string_view target = words[1];
    const bool holds = path == target || target == "/" ||
                       (path.starts_with(target) && path.size() > target.size() && path[target.size()] == '/');
    if (holds && (!best || target.size() >= best->target.size()))
      best = Mount{std::string(target), std::string(words[2]), std::string(words[0])};
  }
  return best;
}

Outcome check_data(const Machine& machine) {
  const std::string folder = machine.host().working_directory();
  const auto mount = mount_of(machine.host(), folder);
  if (!mount) return unknown("/proc/mounts cannot be read");
  Outcome outcome = fine(fmt::format("{} on {}", folder, mount->type));
  const bool remote = mount->type.starts_with("nfs") || mount->type == "cifs" || mount->type.starts_with("fuse.") ||
                      mount->type == "9p" || mount->type == "ceph";
  if (remote)
    outcome.wrong("perf.data")
        .fact("folder", folder)
        .fact("type", mount->type)
        .seen("/proc/mounts", fmt::format("{} {} {}", mount->source, mount->target, mount->type));
  return outcome;
}

Outcome check_huge_pages(const Machine& machine) {
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  const auto text = machine.host().value(path);
  if (!text) return unknown("not told");
  if (text->find("[never]") == std::string::npos) return fine(*text);
  Outcome outcome;
  outcome.wrong("perf.hugepages").seen(path, *text);
  return outcome;
}

}  // namespace

std::vector<Check> performance_checks() {
  constexpr auto kUse = Check::Use::performance;
  return {{"perf.link", Layer::bus, check_link, kUse},
          {"perf.power", Layer::hardware, check_power, kUse},
          {"perf.clocks", Layer::hardware, check_clocks, kUse},
          {"perf.cpus", Layer::system, check_cpus, kUse},
          {"perf.data", Layer::system, check_data, kUse},
          {"perf.numa", Layer::system, check_numa, kUse},
          {"perf.governor", Layer::system, check_governor, kUse},
          {"perf.bar", Layer::system, check_bar, kUse},
          {"perf.hugepages", Layer::system, check_huge_pages, kUse}};
}

}  // namespace gpuwright::doctor
