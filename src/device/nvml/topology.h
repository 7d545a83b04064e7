// What NVIDIA's library tells about how GPUs are joined.
#pragma once

#include <chrono>

#include "device/topology.h"

namespace gpuwright::device::nvidia {

// Adds to what the PCI tree told. Gives up at the deadline, with a note.
void add_topology(const SourceOptions& options, const Snapshot& snapshot, std::chrono::milliseconds deadline,
                  Topology& topology);

}  // namespace gpuwright::device::nvidia
