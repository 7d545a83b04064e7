// How GPUs are called in what the checks find.
#pragma once

#include <fmt/format.h>

#include <string>

#include "device/snapshot.h"

namespace gpuwright::doctor {

// "GPU 0 (NVIDIA H100 80GB HBM3)", as the driver counts and names it.
inline std::string name_of(const device::Gpu& gpu) {
  return fmt::format("GPU {}{}", gpu.index, gpu.name ? " (" + *gpu.name + ")" : "");
}

}  // namespace gpuwright::doctor
