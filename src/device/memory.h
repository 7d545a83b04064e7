// The memory of the GPUs that are present, as their drivers tell it at this moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace gpuwright::device {

struct GpuMemory {
  std::string name;     // "NVIDIA GeForce RTX 4090"; for AMD the PCI id "1002:744c", as the kernel knows no names
  std::string address;  // "card0", or "GPU 0" in NVML's order
  std::optional<std::uint16_t> pci_vendor, pci_device;  // AMD
  Bytes total, free;
};

struct Sources {
  std::string root;                                // before /sys; empty = this machine
  std::string nvml_library = "libnvidia-ml.so.1";  // as dlopen takes it; empty = do not ask NVIDIA's driver
};

struct Present {
  std::vector<GpuMemory> gpus;
  std::vector<std::string> looked_at;  // "libnvidia-ml.so.1: cannot open ...", one a source that had no GPU
};

// Reads; changes nothing. A source that is missing or fails is told in looked_at and does not hide the other.
Present read_gpu_memory(const Sources& sources = {});

}  // namespace gpuwright::device
