// Who works on the device, in the four forms that drivers have had for it, and how much each of them does.
#include <algorithm>
#include <cmath>

#include "sim/nvml/call.h"

namespace gpuwright::sim {
namespace {

using nvml::Return;

constexpr std::uint8_t kCompute = 1, kGraphics = 2, kMps = 4;
constexpr double kSampleSeconds = 0.2;    // how often the driver takes a sample of each process
constexpr unsigned kSampleBuffer = 100;   // what drivers say when asked how many samples there may be
constexpr unsigned kDeadPid = 4'194'000;  // nobody's
constexpr unsigned kImpossiblePercent = 37'100;

unsigned long long memory_of(const GpuView& gpu, const ProcessSpec& process) {
  const bool told = gpu.scenario().driver.process_memory_told;
  return told ? static_cast<unsigned long long>(process.memory) : nvml::kMemoryNotAvailable;
}

nvml::ProcessInfoV1 entry_of(const GpuView& gpu, const GpuView::Process& process, nvml::ProcessInfoV1) {
  return {static_cast<unsigned>(process.spec->pid), memory_of(gpu, *process.spec)};
}
nvml::ProcessInfoV2 entry_of(const GpuView& gpu, const GpuView::Process& process, nvml::ProcessInfoV2) {
  return {static_cast<unsigned>(process.spec->pid), memory_of(gpu, *process.spec), process.gpu_instance,
          process.compute_instance};
}
nvml::ProcessDetail entry_of(const GpuView& gpu, const GpuView::Process& process, nvml::ProcessDetail) {
  return {static_cast<unsigned>(process.spec->pid), memory_of(gpu, *process.spec), process.gpu_instance,
          process.compute_instance, 0};
}

// The buffer holds `count` entries; where they are too few, nothing is written but how many there are.
template <class Entry>
Return write_list(const GpuView& gpu, std::uint8_t kinds, unsigned* count, void* entries) {
  const auto processes = gpu.processes(kinds);
  const unsigned room = *count;
  *count = static_cast<unsigned>(processes.size());
  if (room < processes.size()) return nvml::kInsufficientSize;
  if (processes.empty()) return nvml::kSuccess;
  if (entries == nullptr) return nvml::kInvalidArgument;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const Entry entry = entry_of(gpu, processes[i], Entry{});
    std::memcpy(static_cast<char*>(entries) + i * sizeof(Entry), &entry, sizeof(Entry));
  }
  return nvml::kSuccess;
}

template <class Entry>
Return list(const char* function, nvml::Device device, std::uint8_t kinds, unsigned* count, Entry* entries) {
  if (count == nullptr) return nvml::kInvalidArgument;
  return calls::for_device(function, device,
                           [&](const GpuView& gpu) { return write_list<Entry>(gpu, kinds, count, entries); });
}

// 535.43 to 535.86 wrote the longer struct under the name of the third version.
Return list_v3(const char* function, nvml::Device device, std::uint8_t kinds, unsigned* count,
               nvml::ProcessInfoV2* entries) {
  if (count == nullptr) return nvml::kInvalidArgument;
  return calls::for_device(function, device, [&](const GpuView& gpu) {
    const bool long_entries = gpu.scenario().driver.process_layout == ProcessLayout::early_535;
    return long_entries ? write_list<nvml::ProcessDetail>(gpu, kinds, count, entries)
                        : write_list<nvml::ProcessInfoV2>(gpu, kinds, count, entries);
  });
}

struct Work {
  unsigned pid = 0;
  unsigned long long timestamp_us = 0;
  unsigned sm = 0, memory = 0, encoder = 0, decoder = 0;
};

// Samples after `last_seen_us` of the processes that did something; and some that cannot be, where the scenario wants
// them: of a process that does not exist, of more than 100 %, and older than what was asked for.
std::vector<Work> work_since(const GpuView& gpu, unsigned long long last_seen_us) {
  const double sampled = std::floor(gpu.time() / kSampleSeconds) * kSampleSeconds;
  const GpuView then(gpu.host(), gpu.index(), -1, sampled);
  const auto stamp = static_cast<unsigned long long>(gpu.host().unix_us(sampled));
  std::vector<Work> all;
  for (const auto& process : then.processes(0xff)) {
    const ProcessSpec& spec = *process.spec;
    const Work work{static_cast<unsigned>(spec.pid), stamp,
                    then.percent(spec.sm),           then.percent(spec.memory_load),
                    then.percent(spec.encoder),      then.percent(spec.decoder)};
    if (work.sm + work.memory + work.encoder + work.decoder > 0 && stamp > last_seen_us) all.push_back(work);
  }
  if (gpu.scenario().driver.impossible_samples) {
    const auto running = then.processes(0xff);
    if (!running.empty()) {
      const auto pid = static_cast<unsigned>(running.front().spec->pid);
      all.push_back({pid, stamp + 1, kImpossiblePercent, 0, 0, 0});
      if (last_seen_us > 0) all.push_back({pid, last_seen_us, 99, 99, 0, 0});
    }
    all.push_back({kDeadPid, stamp + 1, 50, 50, 0, 0});
  }
  return all;
}

bool tells_work(const GpuView& gpu) {
  return !gpu.spec().mig && gpu.scenario().driver.process_samples_told;
}

std::optional<std::uint8_t> kinds_of(unsigned mode) {
  switch (mode) {
    case nvml::kModeCompute:
      return kCompute;
    case nvml::kModeGraphics:
      return kGraphics;
    case nvml::kModeMps:
      return kMps;
    case nvml::kModeAll:
      return std::uint8_t{0xff};
    default:
      return std::nullopt;
  }
}

}  // namespace

Return nvmlDeviceGetComputeRunningProcesses(nvml::Device device, unsigned* count, nvml::ProcessInfoV1* entries) {
  return list(__func__, device, kCompute, count, entries);
}
Return nvmlDeviceGetComputeRunningProcesses_v2(nvml::Device device, unsigned* count, nvml::ProcessInfoV2* entries) {
  return list(__func__, device, kCompute, count, entries);
}
Return nvmlDeviceGetComputeRunningProcesses_v3(nvml::Device device, unsigned* count, nvml::ProcessInfoV2* entries) {
  return list_v3(__func__, device, kCompute, count, entries);
}
Return nvmlDeviceGetGraphicsRunningProcesses(nvml::Device device, unsigned* count, nvml::ProcessInfoV1* entries) {
  return list(__func__, device, kGraphics, count, entries);
}
Return nvmlDeviceGetGraphicsRunningProcesses_v2(nvml::Device device, unsigned* count, nvml::ProcessInfoV2* entries) {
  return list(__func__, device, kGraphics, count, entries);
}
Return nvmlDeviceGetGraphicsRunningProcesses_v3(nvml::Device device, unsigned* count, nvml::ProcessInfoV2* entries) {
  return list_v3(__func__, device, kGraphics, count, entries);
}
Return nvmlDeviceGetMPSComputeRunningProcesses(nvml::Device device, unsigned* count, nvml::ProcessInfoV1* entries) {
  return list(__func__, device, kMps, count, entries);
}
Return nvmlDeviceGetMPSComputeRunningProcesses_v2(nvml::Device device, unsigned* count, nvml::ProcessInfoV2* entries) {
  return list(__func__, device, kMps, count, entries);
}
Return nvmlDeviceGetMPSComputeRunningProcesses_v3(nvml::Device device, unsigned* count, nvml::ProcessInfoV2* entries) {
  return list_v3(__func__, device, kMps, count, entries);
}

Return nvmlDeviceGetRunningProcessDetailList(nvml::Device device, nvml::ProcessDetailList* processes) {
  return calls::for_device(__func__, device, [&](const GpuView& gpu) {
    if (const Return code = calls::check_version(gpu, processes, 1); code != nvml::kSuccess) return code;
    if (gpu.spec().compute_major < 9) return nvml::kNotSupported;
    const auto kinds = kinds_of(processes->mode);
    if (!kinds) return nvml::kInvalidArgument;
    return write_list<nvml::ProcessDetail>(gpu, *kinds, &processes->count, processes->processes);
  });
}

Return nvmlDeviceGetProcessUtilization(nvml::Device device, nvml::ProcessUtilizationSample* samples, unsigned* count,
                                       unsigned long long last_seen_us) {
  if (count == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    if (!tells_work(gpu)) return nvml::kNotSupported;
    const unsigned room = *count;
    *count = kSampleBuffer;
    if (samples == nullptr) return nvml::kInsufficientSize;
    const std::vector<Work> all = work_since(gpu, last_seen_us);
    if (all.empty()) {
      *count = 0;
      return nvml::kNotFound;
    }
    if (all.size() > room) return nvml::kInsufficientSize;
    *count = static_cast<unsigned>(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      samples[i] = {all[i].pid, all[i].timestamp_us, all[i].sm, all[i].memory, all[i].encoder, all[i].decoder};
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetProcessesUtilizationInfo(nvml::Device device, nvml::ProcessesUtilizationInfo* info) {
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    if (const Return code = calls::check_version(gpu, info, 1); code != nvml::kSuccess) return code;
    if (!tells_work(gpu)) return nvml::kNotSupported;
    const std::vector<Work> all = work_since(gpu, info->last_seen_us);
    const unsigned room = info->count;
    info->count = static_cast<unsigned>(all.size());
    if (all.empty()) return nvml::kNotFound;
    if (info->samples == nullptr || all.size() > room) return nvml::kInsufficientSize;
    for (std::size_t i = 0; i < all.size(); ++i)
      info->samples[i] = {all[i].timestamp_us, all[i].pid,     all[i].sm, all[i].memory,
                          all[i].encoder,      all[i].decoder, 0,         0};
    return nvml::kSuccess;
  });
}

}  // namespace gpuwright::sim
