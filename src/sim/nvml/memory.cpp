// How much memory there is and is used. From driver branch 510 on the first version's "used" holds what the driver
// keeps for itself, too; the second version tells it apart.
#include "sim/nvml/call.h"

namespace gpuwright::sim {
namespace {

using nvml::Return;

// Whether memory is told at all: GB10 and its like answer "not supported", Jetson's library success and zeros.
Return answer_of(const GpuView& gpu) {
  if (gpu.instance() != nullptr) return nvml::kSuccess;
  return gpu.spec().memory_answer == MemoryAnswer::not_supported ? nvml::kNotSupported : nvml::kSuccess;
}

struct Amounts {
  unsigned long long total = 0, reserved = 0, used = 0, free = 0;
};

Amounts amounts_of(const GpuView& gpu) {
  if (gpu.instance() == nullptr && gpu.spec().memory_answer == MemoryAnswer::zero) return {};
  Amounts amounts;
  amounts.total = static_cast<unsigned long long>(gpu.memory_total());
  amounts.reserved = static_cast<unsigned long long>(gpu.memory_reserved());
  amounts.used = static_cast<unsigned long long>(gpu.memory_used());
  amounts.free = amounts.total - amounts.reserved - amounts.used;
  return amounts;
}

}  // namespace

Return nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* memory) {
  if (memory == nullptr) return nvml::kInvalidArgument;
  return calls::for_device(__func__, device, [&](const GpuView& gpu) {
    if (const Return code = answer_of(gpu); code != nvml::kSuccess) return code;
    const Amounts amounts = amounts_of(gpu);
    *memory = {amounts.total, amounts.free, amounts.used + amounts.reserved};
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetMemoryInfo_v2(nvml::Device device, nvml::MemoryV2* memory) {
  return calls::for_device(__func__, device, [&](const GpuView& gpu) {
    if (const Return code = calls::check_version(gpu, memory, 2); code != nvml::kSuccess) return code;
    if (const Return code = answer_of(gpu); code != nvml::kSuccess) return code;
    const Amounts amounts = amounts_of(gpu);
    *memory = {memory->version, amounts.total, amounts.reserved, amounts.free, amounts.used};
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetBAR1MemoryInfo(nvml::Device device, nvml::Bar1Memory* memory) {
  if (memory == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    const GpuSpec& spec = gpu.spec();
    if (spec.unified_memory()) return nvml::kNotSupported;
    const auto total = static_cast<unsigned long long>(spec.bar1_total);
    const auto used = static_cast<unsigned long long>(spec.bar1_used);
    *memory = {total, total - used, used};
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetMemoryBusWidth(nvml::Device device, unsigned* bits) {
  return calls::tell(__func__, device, bits, [](const GpuView&) { return std::optional<unsigned>(); });
}

Return nvmlDeviceGetConfComputeMemSizeInfo(nvml::Device device, nvml::ConfComputeMemSizeInfo* memory) {
  if (memory == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [](const GpuView&) { return nvml::kNotSupported; });
}

}  // namespace gpuwright::sim
