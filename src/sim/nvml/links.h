// How the GPUs of a scenario are joined by NVLink.
#pragma once

#include <optional>

#include "base/nvml_abi.h"
#include "sim/gpu_view.h"

namespace gpuwright::sim {

// The GPU at the other end; nothing where that is a switch, or nobody.
std::optional<int> link_peer(const GpuView& gpu, int link);
bool link_active(const GpuView& gpu, int link);
// Through a switch all links lead to each of the others.
int links_between(const GpuView& gpu, int other);
int nvlink_version(const GpuSpec& spec);
double link_mb_per_second(const GpuSpec& spec);  // of one link, in one direction

// Both forms of the address into the struct.
void write_addresses(unsigned domain, unsigned bus, unsigned device, nvml::PciInfo& info);

}  // namespace gpuwright::sim
