// What amdgpu's compute side (KFD) tells: the instruction set of each GPU, its XGMI neighbours, and the memory of each
// process, which everybody may read. Files: Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c and kfd_process.c.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "device/snapshot.h"

namespace gpuwright::device {

struct KfdNode {
  std::int64_t gpu_id = 0;           // names files of kfd/proc
  std::string instruction_set;       // "gfx942"
  bool has_cpu_cores = false;        // GPU and CPU are one node: an APU
  std::vector<std::string> xgmi_to;  // PCI addresses of the neighbours, in the order of the links
};

// By PCI address. Empty without KFD.
std::map<std::string, KfdNode> read_kfd_topology(const std::string& root);

// "gfx942" of gfx_target_version 90402: major, minor, stepping, the last one in hexadecimal.
std::string instruction_set_of(std::int64_t gfx_target_version);

struct KfdMemory {
  std::int64_t pid = 0;
  std::int64_t gpu_id = 0;
  Bytes memory;
};
std::vector<KfdMemory> read_kfd_processes(const std::string& root);

}  // namespace gpuwright::device
