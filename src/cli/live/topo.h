// `topo` for people and programs.
#pragma once

#include "base/json.h"
#include "cli/command.h"
#include "device/topology.h"

namespace gpuwright::cli {

// The matrix as `nvidia-smi topo -m` has it, then what CUDA calls each GPU.
void print_topology(const device::Snapshot& snapshot, const device::Topology& topology, const device::CudaView& view,
                    const Console& console);
Json topology_json(const device::Snapshot& snapshot, const device::Topology& topology, const device::CudaView& view);

// "NV18", "PIX", "X"; "n/a" where it is not known.
std::string connection(const device::Topology& topology, int a, int b);

}  // namespace gpuwright::cli
