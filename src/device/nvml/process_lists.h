// The driver's lists of processes on a device or a MIG instance. Three generations of functions exist, whose entries
// grew from 16 to 24 bytes; early 535 drivers fill entries of 32 bytes under a name that elsewhere means 24
// (wookayin/gpustat#161).
#pragma once

#include <cstdint>
#include <vector>

#include "device/nvml/asker.h"

namespace gpuwright::device::nvidia {

struct ProcessEntry {
  unsigned pid = 0;
  unsigned long long memory = nvml::kMemoryNotAvailable;
  unsigned gpu_instance = nvml::kNoInstance, compute_instance = nvml::kNoInstance;
};
struct ProcessList {
  nvml::Return code = nvml::kSuccess;
  std::vector<ProcessEntry> entries;
};
// `kind`: one of process_kind.
ProcessList ask_process_list(Asker& ask, nvml::Device device, std::uint8_t kind);

}  // namespace gpuwright::device::nvidia
