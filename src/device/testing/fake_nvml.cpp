// A libnvidia-ml.so.1 with two GPUs, of which the second does not tell its memory (as a GPU that fell off the bus).
#include <cstring>

#include "device/nvml_abi.h"

namespace nvml = gpuwright::device::nvml;

extern "C" {
nvml::Return nvmlInit_v2() {
  return 0;
}
nvml::Return nvmlShutdown() {
  return 0;
}
nvml::Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
nvml::Return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml::Device* device) {
  static char handles[2];
  *device = reinterpret_cast<nvml::Device>(&handles[index]);
  return 0;
}
nvml::Return nvmlDeviceGetName(nvml::Device, char* name, unsigned size) {
  std::strncpy(name, "NVIDIA GeForce RTX 4090", size);
  return 0;
}
nvml::Return nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* memory) {
  static bool first = true;
  static nvml::Device known = nullptr;
  if (first) known = device, first = false;
  if (device != known) return 15;  // NVML_ERROR_GPU_IS_LOST
  *memory = {25757220864ULL, 25000000000ULL, 757220864ULL};
  return 0;
}
const char* nvmlErrorString(nvml::Return code) {
  return code == 15 ? "GPU is lost" : "unknown";
}
}
