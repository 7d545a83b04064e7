// Opening the library, what it says of itself, and the way to the devices' handles.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "sim/nvml/call.h"

namespace gpuwright::sim {
namespace {

using calls::enter;
using nvml::Return;

Return device_code(const calls::Entry& entry, int gpu) {
  return calls::code_of(GpuView(entry.state(), gpu, -1, entry.time).condition());
}

int count_of(const calls::Entry& entry) {
  return static_cast<int>(entry.state().scenario.gpus.size());
}

// The n-th of the GPUs that this user may open: what functions without "_v2" count.
int accessible(const calls::Entry& entry, unsigned nth) {
  for (int gpu = 0; gpu < count_of(entry); ++gpu)
    if (device_code(entry, gpu) != nvml::kNoPermission && nth-- == 0) return gpu;
  return -1;
}

Return give_handle(const calls::Entry& entry, int gpu, nvml::Device* device) {
  if (device == nullptr || gpu < 0 || gpu >= count_of(entry)) return nvml::kInvalidArgument;
  const Return code = device_code(entry, gpu);
  if (code == nvml::kSuccess) *device = calls::handle_of(gpu, -1);
  return code;
}

template <class Matches>
Return find_handle(const char* function, const char* text, nvml::Device* device, Matches&& matches) {
  const calls::Entry entry = enter(function);
  if (entry.code != nvml::kSuccess) return entry.code;
  if (text == nullptr || device == nullptr) return nvml::kInvalidArgument;
  const auto& gpus = entry.state().scenario.gpus;
  const auto found = std::find_if(gpus.begin(), gpus.end(), matches);
  if (found == gpus.end()) return nvml::kNotFound;
  return give_handle(entry, static_cast<int>(found - gpus.begin()), device);
}

// "0000:1b:00.0" and "1B:00.0" are the same address.
Return handle_by_address(const char* function, const char* text, nvml::Device* device) {
  return find_handle(function, text, device, [text](const GpuSpec& gpu) {
    const std::string wanted = lower(text), address = lower(gpu.pci_address);
    return wanted == address || (wanted.size() >= 7 && wanted.size() <= 12 && address.ends_with(wanted));
  });
}

Return system_text(const char* function, char* into, unsigned size, std::string DriverSpec::*text) {
  const calls::Entry entry = enter(function);
  return entry.code != nvml::kSuccess ? entry.code : calls::copy_text(entry.state().scenario.driver.*text, into, size);
}

Return tell_cuda(const char* function, int* version) {
  const calls::Entry entry = enter(function);
  if (entry.code != nvml::kSuccess) return entry.code;
  if (version == nullptr) return nvml::kInvalidArgument;
  *version = entry.state().scenario.driver.cuda;
  return nvml::kSuccess;
}

}  // namespace

Return nvmlInit_v2() {
  return calls::open_library(__func__);
}

Return nvmlInitWithFlags(unsigned) {
  return calls::open_library(__func__);
}

// Starts every GPU and fails with the first that fails, which is why there is a second version.
Return nvmlInit() {
  if (const Return code = calls::open_library(__func__); code != nvml::kSuccess) return code;
  const calls::Entry entry = enter(__func__);
  for (int gpu = 0; entry.code == nvml::kSuccess && gpu < count_of(entry); ++gpu) {
    const Return code = device_code(entry, gpu);
    if (code == nvml::kSuccess || code == nvml::kNoPermission) continue;
    static_cast<void>(calls::close_library());
    return code;
  }
  return entry.code;
}

Return nvmlShutdown() {
  return calls::close_library();
}

Return nvmlSystemGetDriverVersion(char* version, unsigned size) {
  return system_text(__func__, version, size, &DriverSpec::version);
}

Return nvmlSystemGetNVMLVersion(char* version, unsigned size) {
  const calls::Entry entry = calls::enter_closed(__func__);
  if (entry.code != nvml::kSuccess) return entry.code;
  const DriverSpec& driver = entry.state().scenario.driver;
  return calls::copy_text(fmt::format("{}.{}", driver.cuda / 1000, driver.library_version), version, size);
}

Return nvmlSystemGetCudaDriverVersion(int* version) {
  return tell_cuda(__func__, version);
}
Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return tell_cuda(__func__, version);
}

Return nvmlSystemGetProcessName(unsigned pid, char* name, unsigned size) {
  const calls::Entry entry = enter(__func__);
  if (entry.code != nvml::kSuccess) return entry.code;
  if (name == nullptr || size == 0) return nvml::kInvalidArgument;
  const auto process = entry.host->process(pid);
  return process ? calls::copy_text(process->executable, name, size) : nvml::kNotFound;
}

Return nvmlDeviceGetCount_v2(unsigned* count) {
  const calls::Entry entry = enter(__func__);
  if (entry.code != nvml::kSuccess) return entry.code;
  if (count == nullptr) return nvml::kInvalidArgument;
  *count = static_cast<unsigned>(count_of(entry));
  return nvml::kSuccess;
}

Return nvmlDeviceGetCount(unsigned* count) {
  const calls::Entry entry = enter(__func__);
  if (entry.code != nvml::kSuccess) return entry.code;
  if (count == nullptr) return nvml::kInvalidArgument;
  for (*count = 0; accessible(entry, *count) >= 0; ++*count) continue;
  return nvml::kSuccess;
}

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml::Device* device) {
  const calls::Entry entry = enter(__func__, static_cast<int>(std::min(index, 0xffffU)));
  return entry.code != nvml::kSuccess ? entry.code
                                      : give_handle(entry, static_cast<int>(std::min(index, 0xffffU)), device);
}

Return nvmlDeviceGetHandleByIndex(unsigned index, nvml::Device* device) {
  const calls::Entry entry = enter(__func__);
  return entry.code != nvml::kSuccess ? entry.code : give_handle(entry, accessible(entry, index), device);
}

Return nvmlDeviceGetHandleByUUID(const char* uuid, nvml::Device* device) {
  const calls::Entry entry = enter(__func__);
  if (entry.code != nvml::kSuccess) return entry.code;
  if (uuid == nullptr || device == nullptr) return nvml::kInvalidArgument;
  for (int gpu = 0; gpu < count_of(entry); ++gpu) {
    const GpuView view(entry.state(), gpu, -1, entry.time);
    if (view.spec().uuid == uuid) return give_handle(entry, gpu, device);
    for (const int position : view.instances()) {
      if (view.spec().instances[static_cast<std::size_t>(position)].uuid != uuid) continue;
      *device = calls::handle_of(gpu, position);
      return device_code(entry, gpu);
    }
  }
  return nvml::kNotFound;
}

Return nvmlDeviceGetHandleBySerial(const char* serial, nvml::Device* device) {
  return find_handle(__func__, serial, device,
                     [serial](const GpuSpec& gpu) { return !gpu.serial.empty() && gpu.serial == serial; });
}

Return nvmlDeviceGetHandleByPciBusId(const char* address, nvml::Device* device) {
  return handle_by_address(__func__, address, device);
}
Return nvmlDeviceGetHandleByPciBusId_v2(const char* address, nvml::Device* device) {
  return handle_by_address(__func__, address, device);
}

const char* nvmlErrorString(Return result) {
  switch (result) {
    case nvml::kSuccess:
      return "Success";
    case nvml::kUninitialized:
      return "Uninitialized";
    case nvml::kInvalidArgument:
      return "Invalid Argument";
    case nvml::kNotSupported:
      return "Not Supported";
    case nvml::kNoPermission:
      return "Insufficient Permissions";
    case nvml::kNotFound:
      return "Not Found";
    case nvml::kInsufficientSize:
      return "Insufficient Size";
    case nvml::kDriverNotLoaded:
      return "Driver Not Loaded";
    case nvml::kTimeout:
      return "Timeout";
    case nvml::kLibraryNotFound:
      return "NVML Shared Library Not Found";
    case nvml::kFunctionNotFound:
      return "Function Not Found";
    case nvml::kGpuIsLost:
      return "GPU is lost";
    case nvml::kResetRequired:
      return "GPU requires reset";
    case nvml::kLibRmVersionMismatch:
      return "Driver/library version mismatch";
    case nvml::kNoData:
      return "No data";
    case nvml::kArgumentVersionMismatch:
      return "Argument version mismatch";
    case nvml::kDeprecated:
      return "Deprecated";
    case nvml::kNotReady:
      return "Not Ready";
    default:
      return "Unknown Error";
  }
}

}  // namespace gpuwright::sim
