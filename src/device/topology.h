// How the GPUs of a host are joined: to each other, to CPUs and memory, and by which number CUDA knows them.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/snapshot.h"
#include "device/source.h"

namespace gpuwright::device {

// What lies between two GPUs on PCI Express, nearest first; the words of nvidia-smi topo -m.
enum class Path : std::uint8_t {
  same_board,   // PSB: two chips of one board
  one_switch,   // PIX: one PCIe switch
  switches,     // PXB: several PCIe switches
  host_bridge,  // PHB: a host bridge, which is the CPU
  numa_node,    // NODE: host bridges of one NUMA node
  system,       // SYS: the connection between NUMA nodes
};
std::string_view to_string(Path path);   // "one PCIe switch"
std::string_view short_name(Path path);  // "PIX"

struct TopologyGpu {
  int index = 0;              // Gpu::index
  Reading<std::string> cpus;  // near ones, "0-31,64-95"
  Reading<std::int64_t> numa_node;
  Reading<std::int64_t> links;  // NVLinks that are up, to whatever
  Reading<std::int64_t> links_to_switch;
  // Which device it is to CUDA when all are visible: with CUDA_DEVICE_ORDER=PCI_BUS_ID, and with the default, which is
  // fastest first. Of unlike GPUs CUDA does not say how it ranks them: no_data.
  Reading<std::int64_t> cuda_by_bus, cuda_by_speed;
};

// Of each pair once, a < b (Gpu::index).
struct TopologyPair {
  int a = 0, b = 0;
  Reading<Path> path;
  Reading<std::int64_t> links;  // NVLinks from one to the other; 0 where they only meet in a switch
  Reading<bool> peer_read, peer_write, peer_atomics, peer_over_links;
};

struct Topology {
  std::vector<TopologyGpu> gpus;
  std::vector<TopologyPair> pairs;
  std::string note;  // why something is missing for all: "nvmlDeviceGetP2PStatus did not answer in 2000 ms"
  const TopologyPair* pair(int a, int b) const;  // in either order
};

// Of the GPUs of the snapshot, whatever their vendor: from the PCI tree under the root, and for NVIDIA's from its
// library. Does not fail; where the library does not answer by the deadline, what only it knows is unresponsive.
Topology read_topology(const SourceOptions& options, const Snapshot& snapshot, std::chrono::milliseconds deadline);

// What a CUDA program sees: indices of the snapshot's GPUs in CUDA's order. `visible` is CUDA_VISIBLE_DEVICES as the
// program finds it (nullptr = not set), whose numbers count in `order`, CUDA_DEVICE_ORDER. As CUDA does, stops at the
// first entry that names no GPU. no_data in the note where the order of unlike GPUs is needed and not known.
struct CudaView {
  std::vector<int> gpus;
  std::vector<std::string> mig_instances;  // entries "MIG-...", as given
  std::string note;                        // what was not understood; empty when all is well
};
CudaView cuda_view(const Snapshot& snapshot, const char* visible, const char* order);

}  // namespace gpuwright::device
