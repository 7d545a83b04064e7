// The few words of NVML's C ABI that are spoken here, fixed since NVML 4 (nvml.h, "NVML API Reference Guide"): the
// library belongs to the driver and is opened at run time.
#pragma once

namespace gpuwright::device::nvml {

using Return = int;  // NVML_SUCCESS is 0
using Device = struct DeviceHandle*;

struct Memory {
  unsigned long long total, free, used;  // bytes
};

inline constexpr unsigned kNameSize = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE

using Init = Return (*)();
using Shutdown = Return (*)();
using DeviceCount = Return (*)(unsigned*);
using HandleByIndex = Return (*)(unsigned, Device*);
using DeviceName = Return (*)(Device, char*, unsigned);
using MemoryInfo = Return (*)(Device, Memory*);
using ErrorString = const char* (*)(Return);

}  // namespace gpuwright::device::nvml
