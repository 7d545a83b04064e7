#include "device/nvml/process_lists.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace gpuwright::device::nvidia {
namespace {

constexpr unsigned kSlack = 16;  // processes may start between two calls
constexpr unsigned kMostEntries = 1 << 16;
constexpr int kTries = 4;

// Calls until the buffer suffices. The buffer is raw bytes, as `width` depends on the driver.
template <class Info>
nvml::Return list_with(Asker& ask, const Function<nvml::Return(nvml::Device, unsigned*, Info*)>& function,
                       nvml::Device device, std::size_t width, std::vector<std::byte>& bytes, unsigned& entries) {
  unsigned room = kSlack;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    // One width more than said, should a driver fill wider entries than we believe.
    bytes.assign(room * std::max(width, sizeof(nvml::ProcessDetail)), std::byte{0});
    entries = room;
    const nvml::Return code = ask(function, device, &entries, reinterpret_cast<Info*>(bytes.data()));
    if (code != nvml::kInsufficientSize) {
      entries = std::min(entries, room);
      return code;
    }
    if (entries >= kMostEntries) return nvml::kMemory;
    room = std::max(entries, room) + kSlack;
  }
  return nvml::kInsufficientSize;
}

template <class Info>
std::vector<ProcessEntry> entries_of(const std::vector<std::byte>& bytes, unsigned count, std::size_t width) {
  std::vector<ProcessEntry> entries;
  for (unsigned i = 0; i < count; ++i) {
    Info info{};
    std::memcpy(&info, bytes.data() + i * width, sizeof info);
    ProcessEntry entry{info.pid, info.used_gpu_memory};
    if constexpr (!std::is_same_v<Info, nvml::ProcessInfoV1>) {
      entry.gpu_instance = info.gpu_instance;
      entry.compute_instance = info.compute_instance;
    }
    entries.push_back(entry);
  }
  return entries;
}

// The three generations of one list, newest first.
struct Generations {
  const Function<nvml::Return(nvml::Device, unsigned*, nvml::ProcessInfoV2*)>&v3, &v2;
  const Function<nvml::Return(nvml::Device, unsigned*, nvml::ProcessInfoV1*)>& v1;
};

Generations functions_of(const Functions& f, std::uint8_t kind) {
  if (kind == process_kind::kGraphics)
    return {f.nvmlDeviceGetGraphicsRunningProcesses_v3, f.nvmlDeviceGetGraphicsRunningProcesses_v2,
            f.nvmlDeviceGetGraphicsRunningProcesses};
  if (kind == process_kind::kMps)
    return {f.nvmlDeviceGetMPSComputeRunningProcesses_v3, f.nvmlDeviceGetMPSComputeRunningProcesses_v2,
            f.nvmlDeviceGetMPSComputeRunningProcesses};
  return {f.nvmlDeviceGetComputeRunningProcesses_v3, f.nvmlDeviceGetComputeRunningProcesses_v2,
          f.nvmlDeviceGetComputeRunningProcesses};
}

bool lacks(nvml::Return code) {
  return code == nvml::kFunctionNotFound || code == nvml::kDeprecated;
}

}  // namespace

ProcessList ask_process_list(Asker& ask, nvml::Device device, std::uint8_t kind) {
  const Generations functions = functions_of(ask.functions(), kind);
  const std::size_t v3_width =
      ask.library().wide_process_entries() ? sizeof(nvml::ProcessDetail) : sizeof(nvml::ProcessInfoV2);
  std::vector<std::byte> bytes;
  unsigned found = 0;
  nvml::Return code = list_with(ask, functions.v3, device, v3_width, bytes, found);
  if (code == nvml::kSuccess) return {code, entries_of<nvml::ProcessInfoV2>(bytes, found, v3_width)};
  if (!lacks(code)) return {code, {}};
  code = list_with(ask, functions.v2, device, sizeof(nvml::ProcessInfoV2), bytes, found);
  if (code == nvml::kSuccess) return {code, entries_of<nvml::ProcessInfoV2>(bytes, found, sizeof(nvml::ProcessInfoV2))};
  if (!lacks(code)) return {code, {}};
  code = list_with(ask, functions.v1, device, sizeof(nvml::ProcessInfoV1), bytes, found);
  if (code != nvml::kSuccess) return {code, {}};
  return {code, entries_of<nvml::ProcessInfoV1>(bytes, found, sizeof(nvml::ProcessInfoV1))};
}

}  // namespace gpuwright::device::nvidia
