// MIG: a GPU cut into instances, each with a handle of its own.
#include <algorithm>

#include "sim/nvml/call.h"

namespace gpuwright::sim {
namespace {

using nvml::Return;

constexpr unsigned kMostInstances = 7;

template <class Answer>
Return for_instance(const char* function, nvml::Device device, unsigned* value, Answer&& answer) {
  if (value == nullptr) return nvml::kInvalidArgument;
  return calls::for_device(function, device, [&](const GpuView& gpu) {
    if (gpu.instance() == nullptr) return gpu.spec().mig ? nvml::kNotFound : nvml::kNotSupported;
    *value = answer(*gpu.instance());
    return nvml::kSuccess;
  });
}

Return attributes(const char* function, nvml::Device device, nvml::DeviceAttributes* all) {
  if (all == nullptr) return nvml::kInvalidArgument;
  return calls::for_device(function, device, [&](const GpuView& gpu) {
    const MigSpec* instance = gpu.instance();
    if (instance == nullptr) return nvml::kNotSupported;
    const auto slices = static_cast<unsigned>(instance->slices);
    *all = {};
    all->multiprocessors = static_cast<unsigned>(instance->multiprocessors);
    all->copy_engines = slices;
    all->decoders = slices >= 3 ? slices - 1 : slices / 2;
    all->gpu_instance_slices = slices;
    all->compute_instance_slices = slices;
    all->memory_mib = static_cast<unsigned long long>(instance->profile.memory.count >> 20);
    return nvml::kSuccess;
  });
}

}  // namespace

Return nvmlDeviceGetMigMode(nvml::Device device, unsigned* current, unsigned* pending) {
  if (current == nullptr || pending == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    if (gpu.spec().facts->mig_profiles.empty()) return nvml::kNotSupported;
    *current = *pending = gpu.spec().mig ? 1 : 0;
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetMaxMigDeviceCount(nvml::Device device, unsigned* count) {
  return calls::tell(__func__, device, count, [](const GpuView& gpu) {
    return std::optional(gpu.spec().facts->mig_profiles.empty() ? 0U : kMostInstances);
  });
}

Return nvmlDeviceGetMigDeviceHandleByIndex(nvml::Device device, unsigned index, nvml::Device* instance) {
  if (instance == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    if (!gpu.spec().mig) return nvml::kNotSupported;
    const std::vector<int> positions = gpu.instances();
    if (index >= std::max<std::size_t>(kMostInstances, positions.size())) return nvml::kInvalidArgument;
    if (index >= positions.size()) return nvml::kNotFound;
    *instance = calls::handle_of(gpu.index(), positions[index]);
    return nvml::kSuccess;
  });
}

Return nvmlDeviceIsMigDeviceHandle(nvml::Device device, unsigned* is_instance) {
  if (is_instance == nullptr) return nvml::kInvalidArgument;
  return calls::for_device(__func__, device, [&](const GpuView& gpu) {
    *is_instance = gpu.instance() != nullptr ? 1 : 0;
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml::Device instance, nvml::Device* device) {
  if (device == nullptr) return nvml::kInvalidArgument;
  return calls::for_device(__func__, instance, [&](const GpuView& gpu) {
    *device = calls::handle_of(gpu.index(), -1);
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetGpuInstanceId(nvml::Device device, unsigned* id) {
  return for_instance(__func__, device, id,
                      [](const MigSpec& instance) { return static_cast<unsigned>(instance.gpu_instance); });
}
Return nvmlDeviceGetComputeInstanceId(nvml::Device device, unsigned* id) {
  return for_instance(__func__, device, id,
                      [](const MigSpec& instance) { return static_cast<unsigned>(instance.compute_instance); });
}

Return nvmlDeviceGetAttributes(nvml::Device device, nvml::DeviceAttributes* all) {
  return attributes(__func__, device, all);
}
Return nvmlDeviceGetAttributes_v2(nvml::Device device, nvml::DeviceAttributes* all) {
  return attributes(__func__, device, all);
}

}  // namespace gpuwright::sim
