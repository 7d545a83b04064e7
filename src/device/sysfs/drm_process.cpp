#include "device/sysfs/drm_process.h"

namespace gpuwright::device {

Process drm_process(const DrmProcess& found, int gpu, const std::string& root) {
  Process process;
  process.gpu = gpu;
  process.pid = found.pid;
  if (root.empty()) process.pid_here = found.pid;
  explain_unread(process, Why::not_supported);
  return process;
}

std::optional<Bytes> memory_in(const DrmProcess& found, std::initializer_list<std::string_view> regions) {
  std::optional<Bytes> sum;
  for (const auto& [name, bytes] : found.memory)
    for (const std::string_view region : regions) {
      if (!name.starts_with(region)) continue;
      const auto with = checked_add(sum.value_or(Bytes{}).count, bytes.count);
      if (with) sum = Bytes{*with};
      break;
    }
  return sum;
}

Reading<Ratio> busiest(const DrmProcess& found, std::initializer_list<std::string_view> engines) {
  Reading<Ratio> most = Why::not_supported;
  for (const std::string_view name : engines) {
    const auto engine = found.engines.find(name);
    if (engine == found.engines.end()) continue;
    if (!most || (engine->second && *most < *engine->second)) most = engine->second;
  }
  return most;
}

void explain_unread(Process& process, Why why) {
  process.gpu_instance = Why::not_supported;
  process.compute_instance = Why::not_supported;
  for (Reading<Ratio>* reading : {&process.sm_utilization, &process.memory_utilization, &process.encoder_utilization,
                                  &process.decoder_utilization})
    *reading = why;
  process.memory = why;
}

}  // namespace gpuwright::device
