// How busy the device is, and how fast its clocks run.
#include <algorithm>
#include <cmath>

#include "sim/nvml/call.h"

namespace gpuwright::sim {
namespace {

using calls::measure;
using calls::tell;
using nvml::Return;
namespace reason = nvml::clock_reason;

constexpr unsigned kSamplingMicroseconds = 166'667;  // a sixth of a second

using Mhz = std::optional<int>;

// MIG mode hides utilisation: each instance has its own.
Return utilization(const char* function, nvml::Device device, unsigned* percent, unsigned* period,
                   Curve GpuSpec::*load) {
  if (percent == nullptr || period == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(function, device, [&](const GpuView& gpu) {
    if (gpu.spec().mig) return nvml::kNotSupported;
    *percent = gpu.scenario().driver.blank_values ? calls::blank_value<unsigned>() : gpu.percent(gpu.spec().*load);
    *period = kSamplingMicroseconds;
    return nvml::kSuccess;
  });
}

Mhz clock_now(const GpuView& gpu, int type) {
  const GpuSpec& spec = gpu.spec();
  switch (type) {
    case nvml::kClockGraphics:
    case nvml::kClockSm:
      return spec.graphics_clock.max_mhz ? Mhz(gpu.graphics_mhz()) : Mhz();
    case nvml::kClockMemory:
      return spec.memory_clock.max_mhz ? Mhz(gpu.memory_mhz()) : Mhz();
    case nvml::kClockVideo:
      return spec.video_clock.max_mhz ? Mhz(gpu.video_mhz()) : Mhz();
    default:
      return {};
  }
}

Mhz clock_full(const GpuView& gpu, int type) {
  const GpuSpec& spec = gpu.spec();
  switch (type) {
    case nvml::kClockGraphics:
    case nvml::kClockSm:
      return spec.graphics_clock.max_mhz;
    case nvml::kClockMemory:
      return spec.memory_clock.max_mhz;
    case nvml::kClockVideo:
      return spec.video_clock.max_mhz;
    default:
      return {};
  }
}

bool is_clock(int type) {
  return type >= nvml::kClockGraphics && type <= nvml::kClockVideo;
}

Return tell_clock(const char* function, nvml::Device device, int type, unsigned* mhz,
                  Mhz (*clock)(const GpuView&, int)) {
  if (!is_clock(type)) return nvml::kInvalidArgument;
  return measure(function, device, mhz, [&](const GpuView& gpu) { return clock(gpu, type); });
}

Return reasons(const char* function, nvml::Device device, unsigned long long* bits) {
  return tell(function, device, bits, [](const GpuView& gpu) { return std::optional(gpu.throttle_reasons()); });
}

Return supported_reasons(const char* function, nvml::Device device, unsigned long long* bits) {
  return tell(function, device, bits, [](const GpuView&) { return std::optional(0x1ffULL); });
}

Return performance_state(const char* function, nvml::Device device, nvml::PerformanceState* state) {
  return tell(function, device, state, [](const GpuView& gpu) { return std::optional(gpu.performance_state()); });
}

// nvmlPerfPolicyType -> bits of the reasons
std::optional<std::uint64_t> bits_of_policy(int policy) {
  switch (policy) {
    case 0:
      return reason::kSoftwarePowerCap;
    case 1:
      return reason::kSoftwareThermal | reason::kHardwareThermal;
    case 2:
      return reason::kSyncBoost;
    case 3:
      return reason::kHardwareSlowdown | reason::kHardwarePowerBrake;
    case 4:
      return reason::kIdle;
    case 5:
      return 0;
    default:
      return std::nullopt;
  }
}

}  // namespace

Return nvmlDeviceGetUtilizationRates(nvml::Device device, nvml::Utilization* rates) {
  if (rates == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    if (gpu.spec().mig) return nvml::kNotSupported;
    const unsigned blank = calls::blank_value<unsigned>();
    *rates = {gpu.percent(gpu.spec().load), gpu.percent(gpu.spec().memory_load)};
    if (gpu.scenario().driver.blank_values) *rates = {blank, blank};
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetEncoderUtilization(nvml::Device device, unsigned* percent, unsigned* period) {
  return utilization(__func__, device, percent, period, &GpuSpec::encoder);
}
Return nvmlDeviceGetDecoderUtilization(nvml::Device device, unsigned* percent, unsigned* period) {
  return utilization(__func__, device, percent, period, &GpuSpec::decoder);
}
Return nvmlDeviceGetJpgUtilization(nvml::Device device, unsigned* percent, unsigned* period) {
  return utilization(__func__, device, percent, period, &GpuSpec::jpeg);
}
Return nvmlDeviceGetOfaUtilization(nvml::Device device, unsigned* percent, unsigned* period) {
  return utilization(__func__, device, percent, period, &GpuSpec::ofa);
}

Return nvmlDeviceGetClockInfo(nvml::Device device, nvml::ClockType type, unsigned* mhz) {
  return tell_clock(__func__, device, type, mhz, clock_now);
}
Return nvmlDeviceGetMaxClockInfo(nvml::Device device, nvml::ClockType type, unsigned* mhz) {
  return tell_clock(__func__, device, type, mhz, clock_full);
}
Return nvmlDeviceGetApplicationsClock(nvml::Device device, nvml::ClockType type, unsigned* mhz) {
  return tell_clock(__func__, device, type, mhz, clock_full);
}
Return nvmlDeviceGetDefaultApplicationsClock(nvml::Device device, nvml::ClockType type, unsigned* mhz) {
  return tell_clock(__func__, device, type, mhz, clock_full);
}
Return nvmlDeviceGetClock(nvml::Device device, nvml::ClockType type, nvml::ClockId id, unsigned* mhz) {
  return tell_clock(__func__, device, type, mhz, id == nvml::kClockCurrent ? clock_now : clock_full);
}

Return nvmlDeviceGetPerformanceState(nvml::Device device, nvml::PerformanceState* state) {
  return performance_state(__func__, device, state);
}
Return nvmlDeviceGetPowerState(nvml::Device device, nvml::PerformanceState* state) {
  return performance_state(__func__, device, state);
}

Return nvmlDeviceGetCurrentClocksEventReasons(nvml::Device device, unsigned long long* bits) {
  return reasons(__func__, device, bits);
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(nvml::Device device, unsigned long long* bits) {
  return reasons(__func__, device, bits);
}
Return nvmlDeviceGetSupportedClocksEventReasons(nvml::Device device, unsigned long long* bits) {
  return supported_reasons(__func__, device, bits);
}
Return nvmlDeviceGetSupportedClocksThrottleReasons(nvml::Device device, unsigned long long* bits) {
  return supported_reasons(__func__, device, bits);
}

Return nvmlDeviceGetViolationStatus(nvml::Device device, int policy, nvml::ViolationTime* time) {
  const auto bits = bits_of_policy(policy);
  if (time == nullptr || !bits) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    *time = {static_cast<unsigned long long>(gpu.host().unix_us(gpu.time())), gpu.throttled_ns(*bits)};
    return nvml::kSuccess;
  });
}

// One sample of now: enough for who asks for the newest, and no more than a driver may have.
Return nvmlDeviceGetSamples(nvml::Device device, int type, unsigned long long last_seen_us, nvml::ValueType* value_type,
                            unsigned* count, nvml::Sample* samples) {
  if (value_type == nullptr || count == nullptr || (samples != nullptr && *count == 0)) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    const GpuSpec& spec = gpu.spec();
    std::optional<unsigned> value;
    if (type == 0 && spec.idle_watts > 0) value = static_cast<unsigned>(std::lround(gpu.watts() * 1000));
    if (type >= 1 && type <= 4 && !spec.mig)
      value = gpu.percent(type == 1   ? spec.load
                          : type == 2 ? spec.memory_load
                          : type == 3 ? spec.encoder
                                      : spec.decoder);
    if (type == 5 || type == 6) value = clock_now(gpu, type == 5 ? nvml::kClockSm : nvml::kClockMemory);
    if (!value) return nvml::kNotSupported;
    *value_type = nvml::kUnsignedInt;
    *count = 1;
    if (samples == nullptr) return nvml::kSuccess;
    const auto now = static_cast<unsigned long long>(gpu.host().unix_us(gpu.time()));
    if (now <= last_seen_us) return nvml::kNotFound;
    samples[0].timestamp_us = now;
    samples[0].value.as_unsigned_long_long = 0;
    samples[0].value.as_unsigned = *value;
    return nvml::kSuccess;
  });
}

}  // namespace gpuwright::sim
