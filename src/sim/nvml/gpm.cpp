// GPM: what the units of a GPU did between two samples. Hopper and later; of MIG instances, too.
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "sim/nvml/call.h"

namespace gpuwright::sim {
namespace {

using nvml::Return;
namespace gpm = nvml::gpm;

constexpr std::size_t kMostSamples = 4096;
constexpr double kMebibyte = 1048576;

struct Moment {
  int gpu = -1, instance = -1;  // gpu -1: allocated, but not taken yet
  double time = 0;
};

struct Samples {
  std::mutex mutex;
  std::map<std::uintptr_t, Moment> all;
  std::uintptr_t next = 0x475800;
};

Samples& samples() {
  static auto* const kSamples = new Samples;
  return *kSamples;
}

bool has_gpm(const GpuSpec& spec) {
  return spec.compute_major >= 9 && !spec.unified_memory();
}

Return take(const GpuView& gpu, int instance, nvml::GpmSample sample) {
  if (!has_gpm(gpu.spec())) return nvml::kNotSupported;
  Samples& registry = samples();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.all.find(reinterpret_cast<std::uintptr_t>(sample));
  if (found == registry.all.end()) return nvml::kInvalidArgument;
  found->second = {gpu.index(), instance, gpu.time()};
  return nvml::kSuccess;
}

std::optional<Moment> moment_of(nvml::GpmSample sample) {
  Samples& registry = samples();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.all.find(reinterpret_cast<std::uintptr_t>(sample));
  return found == registry.all.end() ? std::nullopt : std::optional(found->second);
}

// The mean between the two moments; of one moment where the clock stands.
double mean(const Curve& curve, const Moment& earlier, const Moment& later) {
  return later.time > earlier.time ? curve.mean(earlier.time, later.time) : curve.at(later.time);
}

Return measure(const GpuSpec& spec, const Moment& earlier, const Moment& later, nvml::GpmMetric& metric) {
  const auto percent = [&](const Curve& curve) {
    // What a GPU does is told of each of its instances in proportion to the instance's own load.
    const Curve* load = later.instance < 0 ? nullptr : &spec.instances[static_cast<std::size_t>(later.instance)].load;
    const double whole = mean(spec.load, earlier, later);
    double share = mean(curve, earlier, later);
    if (load != nullptr) share = whole > 0 ? share / whole * mean(*load, earlier, later) : mean(*load, earlier, later);
    metric.value = std::clamp(share, 0.0, 1.0) * 100;
    return nvml::kSuccess;
  };
  const auto traffic = [&](const Curve& curve) {
    metric.value = mean(curve, earlier, later) / kMebibyte;
    return later.instance < 0 ? nvml::kSuccess : nvml::kNotSupported;
  };
  switch (metric.id) {
    case gpm::kGraphicsUtilization:
      return percent(spec.load);
    case gpm::kSmUtilization:
      return percent(spec.sm_activity);
    case gpm::kSmOccupancy:
      return percent(spec.sm_occupancy);
    case gpm::kAnyTensorUtilization:
      return percent(spec.tensor_activity);
    case gpm::kDramBandwidthUtilization:
      return percent(spec.memory_load);
    case gpm::kPcieSentPerSecond:
      return traffic(spec.pcie_sent);
    case gpm::kPcieReceivedPerSecond:
      return traffic(spec.pcie_received);
    case gpm::kNvLinkSentPerSecond:
      return traffic(spec.nvlink_sent);
    case gpm::kNvLinkReceivedPerSecond:
      return traffic(spec.nvlink_received);
    default:
      return nvml::kNotSupported;
  }
}

}  // namespace

Return nvmlGpmQueryDeviceSupport(nvml::Device device, nvml::GpmSupport* support) {
  if (support == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    if (support->version != gpm::kSupportVersion) return nvml::kArgumentVersionMismatch;
    support->supported = has_gpm(gpu.spec()) ? 1 : 0;
    return nvml::kSuccess;
  });
}

Return nvmlGpmSampleAlloc(nvml::GpmSample* sample) {
  const calls::Entry entry = calls::enter(__func__);
  if (entry.code != nvml::kSuccess) return entry.code;
  if (sample == nullptr) return nvml::kInvalidArgument;
  Samples& registry = samples();
  const std::lock_guard lock(registry.mutex);
  if (registry.all.size() >= kMostSamples) return nvml::kMemory;
  registry.next += 16;
  registry.all[registry.next] = {};
  *sample = reinterpret_cast<nvml::GpmSample>(registry.next);  // NOLINT(performance-no-int-to-ptr): an id
  return nvml::kSuccess;
}

Return nvmlGpmSampleFree(nvml::GpmSample sample) {
  const calls::Entry entry = calls::enter(__func__);
  if (entry.code != nvml::kSuccess) return entry.code;
  Samples& registry = samples();
  const std::lock_guard lock(registry.mutex);
  return registry.all.erase(reinterpret_cast<std::uintptr_t>(sample)) == 1 ? nvml::kSuccess : nvml::kInvalidArgument;
}

Return nvmlGpmSampleGet(nvml::Device device, nvml::GpmSample sample) {
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) { return take(gpu, -1, sample); });
}

Return nvmlGpmMigSampleGet(nvml::Device device, unsigned gpu_instance, nvml::GpmSample sample) {
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    for (const int position : gpu.instances())
      if (gpu.spec().instances[static_cast<std::size_t>(position)].gpu_instance == static_cast<int>(gpu_instance))
        return take(gpu, position, sample);
    return gpu.spec().mig ? nvml::kNotFound : nvml::kNotSupported;
  });
}

Return nvmlGpmMetricsGet(nvml::GpmMetricsGet* request) {
  const calls::Entry entry = calls::enter(__func__);
  if (entry.code != nvml::kSuccess) return entry.code;
  if (request == nullptr || request->count > gpm::kMostMetrics) return nvml::kInvalidArgument;
  if (request->version != gpm::kMetricsGetVersion) return nvml::kArgumentVersionMismatch;
  const auto earlier = moment_of(request->earlier), later = moment_of(request->later);
  const auto count = static_cast<int>(entry.state().scenario.gpus.size());
  if (!earlier || !later || later->gpu < 0 || later->gpu >= count || earlier->gpu != later->gpu ||
      earlier->instance != later->instance)
    return nvml::kInvalidArgument;
  const GpuView view(entry.state(), later->gpu, -1, entry.time);
  if (const Return code = calls::code_of(view.condition()); code != nvml::kSuccess) return code;
  for (unsigned i = 0; i < request->count; ++i)
    request->metrics[i].result = measure(view.spec(), *earlier, *later, request->metrics[i]);
  return nvml::kSuccess;
}

}  // namespace gpuwright::sim
