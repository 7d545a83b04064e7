#include "device/topology.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "device/cuda_order.h"
#include "device/nvml/topology.h"
#include "device/sysfs/attribute.h"

namespace gpuwright::device {
namespace {

// Bridges from the host bridge down to the device, which sysfs shows as nested folders:
// "../../../devices/pci0000:16/0000:16:01.0/0000:17:00.0".
std::vector<std::string> chain_of(const std::string& root, const std::string& address) {
  const auto target = read_link(root + "/sys/bus/pci/devices/" + address);
  std::vector<std::string> chain;
  if (!target) return chain;
  for (const std::string_view part : split(*target, '/'))
    if (part.starts_with("pci") || !chain.empty()) chain.emplace_back(part);
  return chain;
}

Reading<Path> path_between(const std::vector<std::string>& a, const std::vector<std::string>& b,
                           const Reading<std::int64_t>& node_a, const Reading<std::int64_t>& node_b) {
  if (a.empty() || b.empty()) return Why::no_data;
  if (a.front() != b.front()) {
    if (!node_a || !node_b) return Why::no_data;
    return *node_a == *node_b ? Path::numa_node : Path::system;
  }
  const auto [end_a, end_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (end_a - a.begin() == 1) return Path::host_bridge;
  // Below the last common bridge: the switch's downstream port and the device, or more switches.
  return a.end() - end_a <= 2 && b.end() - end_b <= 2 ? Path::one_switch : Path::switches;
}

bool on_the_bus(const Gpu& gpu) {
  return gpu.pci_address.known() && !gpu.unified_memory;
}

TopologyGpu gpu_on_bus(const std::string& root, const Gpu& gpu) {
  TopologyGpu told;
  told.index = gpu.index;
  told.numa_node = gpu.numa_node;
  told.links = told.links_to_switch = Why::not_supported;
  told.cpus = Why::no_data;
  if (gpu.pci_address) told.cpus = read_attribute(root + "/sys/bus/pci/devices/" + *gpu.pci_address + "/local_cpulist");
  return told;
}

}  // namespace

std::string_view to_string(Path path) {
  switch (path) {
    case Path::same_board:
      return "one board";
    case Path::one_switch:
      return "one PCIe switch";
    case Path::switches:
      return "several PCIe switches";
    case Path::host_bridge:
      return "a host bridge";
    case Path::numa_node:
      return "host bridges of one NUMA node";
    case Path::system:
      return "NUMA nodes";
  }
  return "unknown";
}

std::string_view short_name(Path path) {
  switch (path) {
    case Path::same_board:
      return "PSB";
    case Path::one_switch:
      return "PIX";
    case Path::switches:
      return "PXB";
    case Path::host_bridge:
      return "PHB";
    case Path::numa_node:
      return "NODE";
    case Path::system:
      return "SYS";
  }
  return "?";
}

const TopologyPair* Topology::pair(int a, int b) const {
  const auto found =
      std::find_if(pairs.begin(), pairs.end(), [low = std::min(a, b), high = std::max(a, b)](const TopologyPair& pair) {
        return pair.a == low && pair.b == high;
      });
  return found == pairs.end() ? nullptr : &*found;
}

Topology read_topology(const SourceOptions& options, const Snapshot& snapshot, std::chrono::milliseconds deadline) {
  Topology topology;
  // A simulated host has no PCI tree but the one that a root gives it.
  const bool has_tree = options.simulated == nullptr || !options.root.empty();
  const std::vector<CudaNumbers> numbers = cuda_numbers(snapshot.gpus);
  std::vector<std::vector<std::string>> chains(snapshot.gpus.size());
  for (std::size_t i = 0; i < snapshot.gpus.size(); ++i) {
    const Gpu& gpu = snapshot.gpus[i];
    topology.gpus.push_back(has_tree ? gpu_on_bus(options.root, gpu) : TopologyGpu{});
    TopologyGpu& mine = topology.gpus.back();
    mine.index = gpu.index;
    mine.numa_node = gpu.numa_node;
    mine.cuda_by_bus = numbers[i].by_bus;
    mine.cuda_by_speed = numbers[i].by_speed;
    if (has_tree && on_the_bus(gpu)) chains[i] = chain_of(options.root, *gpu.pci_address);
  }
  for (std::size_t i = 0; i < snapshot.gpus.size(); ++i)
    for (std::size_t k = i + 1; k < snapshot.gpus.size(); ++k) {
      const Gpu &a = snapshot.gpus[i], &b = snapshot.gpus[k];
      TopologyPair pair;
      std::tie(pair.a, pair.b) = std::minmax(a.index, b.index);
      pair.path = path_between(chains[i], chains[k], a.numa_node, b.numa_node);
      pair.links = Why::not_supported;
      pair.peer_read = pair.peer_write = pair.peer_atomics = pair.peer_over_links = Why::not_supported;
      topology.pairs.push_back(pair);
    }
  nvidia::add_topology(options, snapshot, deadline, topology);
  return topology;
}

}  // namespace gpuwright::device
