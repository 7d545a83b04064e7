// From what the library answers to Readings: why a value is missing, and which values cannot be. Drivers hand out
// sentinels (all ones, INT_MAX - n, NVIDIA/gpu-monitoring-tools#152) where they know nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "base/nvml_abi.h"
#include "device/snapshot.h"

namespace gpuwright::device::nvidia {

Why why_of(nvml::Return code);
// What becomes of a device that answers this to everything.
State state_of(nvml::Return code);

constexpr bool is_blank(std::uint64_t value) {
  return value >= 0x7ffffffffffffff0ULL;
}
constexpr bool is_blank32(std::uint32_t value) {
  return value >= 0x7ffffff0U;
}

// 0..100 of a counter that cannot be more.
Reading<Ratio> percent(nvml::Return code, unsigned value);
// The same in floating point; up to `slack` above 100 is rounding of the driver and taken as 100.
Reading<Ratio> percent_or_clamped(nvml::Return code, double value, double slack);
Reading<std::int64_t> count(nvml::Return code, std::uint64_t value);
Reading<std::int64_t> count32(nvml::Return code, std::uint32_t value);
Reading<Bytes> byte_count(nvml::Return code, std::uint64_t value);
Reading<Hertz> megahertz(nvml::Return code, unsigned value);
Reading<Watts> milliwatts(nvml::Return code, std::uint64_t value);
Reading<Celsius> degrees(nvml::Return code, std::int64_t value);
Reading<bool> yes_or_no(nvml::Return code, std::int64_t value);
// A text of a driver, made printable; empty texts and "N/A" are no data.
Reading<std::string> text(nvml::Return code, const char* value, std::size_t size);

// Every reading of the GPU that has no value gets this reason.
void explain_missing(Gpu& gpu, Why why);

}  // namespace gpuwright::device::nvidia
