// A scenario file from anybody: it is read or refused with a reason; a host that comes of it answers every kind of
// question at several moments, and its numbers stay within what can be.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/gpu_view.h"
#include "sim/host.h"
#include "sim/nvml.h"
#include "sim/nvml/call.h"

namespace {

using namespace gpuwright;
using namespace gpuwright::sim;

void look_at(const Host& host, int index, double time) {
  const GpuView gpu(host.state(), index, -1, time);
  if (gpu.memory_used() < 0 || gpu.memory_used() > gpu.memory_total() - gpu.memory_reserved()) std::abort();
  if (gpu.percent(gpu.spec().load) > 100 || gpu.percent(gpu.spec().encoder) > 100) std::abort();
  if (!(gpu.watts() >= 0) || !(gpu.celsius() > -1e4)) std::abort();
  static_cast<void>(gpu.graphics_mhz() + gpu.memory_mhz() + gpu.video_mhz() + gpu.fan_percent());
  static_cast<void>(gpu.throttle_reasons() + gpu.throttled_ns(~0ULL) + gpu.counter(gpu.spec().nvlink_sent));
  for (const int position : gpu.instances()) {
    const GpuView part(host.state(), index, position, time);
    if (part.memory_used() < 0 || part.memory_used() > part.memory_total()) std::abort();
  }
}

// Without hangs and slow calls, which would only cost time.
bool is_quick(const Host& host) {
  if (host.state().scenario.pcie_throughput_microseconds > 0) return false;
  for (const Fault& fault : host.state().scenario.faults)
    if (fault.kind == FaultKind::hang || fault.kind == FaultKind::slow) return false;
  return true;
}

void ask(unsigned index) {
  nvml::Device device = nullptr;
  if (nvmlDeviceGetHandleByIndex_v2(index, &device) != nvml::kSuccess) return;
  nvml::FieldValue fields[8]{};
  const unsigned ids[] = {nvml::field::kTotalEnergy,    nvml::field::kPowerInstant,     nvml::field::kNvLinkDataSent,
                          nvml::field::kPcieSentBytes,  nvml::field::kNvLinkSpeed,      nvml::field::kRecoveryAction,
                          nvml::field::kShutdownTlimit, nvml::field::kMemoryTemperature};
  for (int i = 0; i < 8; ++i) fields[i].field_id = ids[i];
  static_cast<void>(nvmlDeviceGetFieldValues(device, 8, fields));
  nvml::ProcessInfoV1 processes[16];
  unsigned count = 16;
  static_cast<void>(nvmlDeviceGetComputeRunningProcesses(device, &count, processes));
  nvml::ProcessUtilizationSample samples[16];
  count = 16;
  static_cast<void>(nvmlDeviceGetProcessUtilization(device, samples, &count, 1));
  char name[nvml::kNameSize];
  static_cast<void>(nvmlDeviceGetName(device, name, sizeof name));
  nvml::PciInfo pci{};
  static_cast<void>(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, 0, &pci));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto host = Host::from_toml(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.toml");
  if (!host) {
    if (host.error().what.empty()) std::abort();
    return 0;
  }
  const auto gpus = static_cast<int>((*host)->state().scenario.gpus.size());
  const bool quick = is_quick(**host);
  if (quick) install_nvml(*host);
  for (const double time : {0.0, 1.0, 59.5, 1e6}) {
    (*host)->set_time(time);
    for (int index = 0; index < gpus; ++index) look_at(**host, index, time);
    static_cast<void>((*host)->file("/proc/meminfo"));
    if (!quick || nvmlInit_v2() != nvml::kSuccess) continue;
    for (int index = 0; index < gpus; ++index) ask(static_cast<unsigned>(index));
  }
  install_nvml(nullptr);
  return 0;
}
