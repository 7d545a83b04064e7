// Power, energy, temperatures, fans.
#include <cmath>

#include "sim/nvml/call.h"

namespace gpuwright::sim {
namespace {

using calls::measure;
using calls::tell;
using nvml::Return;

std::optional<long> milliwatts(double watts) {
  return watts > 0 ? std::optional(std::lround(watts * 1000)) : std::nullopt;
}

std::optional<int> degrees(int celsius) {
  return celsius > 0 ? std::optional(celsius) : std::nullopt;
}

}  // namespace

Return nvmlDeviceGetPowerUsage(nvml::Device device, unsigned* power) {
  return measure(__func__, device, power, [](const GpuView& gpu) {
    return gpu.spec().idle_watts > 0 ? milliwatts(gpu.average_watts()) : std::nullopt;
  });
}

Return nvmlDeviceGetPowerManagementMode(nvml::Device device, nvml::EnableState* mode) {
  return tell(__func__, device, mode,
              [](const GpuView& gpu) { return gpu.spec().power_limit > 0 ? std::optional(1) : std::nullopt; });
}

Return nvmlDeviceGetPowerManagementLimit(nvml::Device device, unsigned* limit) {
  return tell(__func__, device, limit, [](const GpuView& gpu) { return milliwatts(gpu.spec().power_limit); });
}
Return nvmlDeviceGetEnforcedPowerLimit(nvml::Device device, unsigned* limit) {
  return tell(__func__, device, limit, [](const GpuView& gpu) { return milliwatts(gpu.spec().power_limit); });
}
Return nvmlDeviceGetPowerManagementDefaultLimit(nvml::Device device, unsigned* limit) {
  return tell(__func__, device, limit, [](const GpuView& gpu) { return milliwatts(gpu.spec().power_default); });
}

Return nvmlDeviceGetPowerManagementLimitConstraints(nvml::Device device, unsigned* low, unsigned* high) {
  if (low == nullptr || high == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    const auto least = milliwatts(gpu.spec().power_min), most = milliwatts(gpu.spec().power_max);
    if (!least || !most) return nvml::kNotSupported;
    *low = static_cast<unsigned>(*least);
    *high = static_cast<unsigned>(*most);
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetTotalEnergyConsumption(nvml::Device device, unsigned long long* energy) {
  return measure(__func__, device, energy, [](const GpuView& gpu) {
    const bool told = gpu.spec().idle_watts > 0 && gpu.spec().compute_major >= 7;
    return told ? std::optional(std::llround(gpu.energy_joules() * 1000)) : std::nullopt;
  });
}

Return nvmlDeviceGetTemperature(nvml::Device device, nvml::TemperatureSensor sensor, unsigned* celsius) {
  if (sensor != nvml::kTemperatureGpu) return nvml::kInvalidArgument;
  return measure(__func__, device, celsius,
                 [](const GpuView& gpu) { return std::optional(std::lround(gpu.celsius())); });
}

Return nvmlDeviceGetTemperatureV(nvml::Device device, nvml::TemperatureV1* temperature) {
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    if (const Return code = calls::check_version(gpu, temperature, 1); code != nvml::kSuccess) return code;
    if (temperature->sensor != nvml::kTemperatureGpu) return nvml::kInvalidArgument;
    temperature->temperature = static_cast<int>(std::lround(gpu.celsius()));
    if (gpu.scenario().driver.blank_values) temperature->temperature = calls::blank_value<int>();
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetTemperatureThreshold(nvml::Device device, nvml::TemperatureThreshold which, unsigned* celsius) {
  return tell(__func__, device, celsius, [&](const GpuView& gpu) -> std::optional<int> {
    switch (which) {
      case nvml::kThresholdShutdown:
        return degrees(gpu.spec().shutdown_celsius);
      case nvml::kThresholdSlowdown:
        return degrees(gpu.spec().slowdown_celsius);
      default:
        return {};
    }
  });
}

Return nvmlDeviceGetNumFans(nvml::Device device, unsigned* count) {
  return tell(__func__, device, count,
              [](const GpuView& gpu) { return gpu.spec().fans > 0 ? std::optional(gpu.spec().fans) : std::nullopt; });
}

Return nvmlDeviceGetFanSpeed(nvml::Device device, unsigned* percent) {
  return measure(__func__, device, percent, [](const GpuView& gpu) {
    return gpu.spec().fans > 0 ? std::optional(gpu.fan_percent()) : std::nullopt;
  });
}

Return nvmlDeviceGetFanSpeed_v2(nvml::Device device, unsigned fan, unsigned* percent) {
  return measure(__func__, device, percent, [fan](const GpuView& gpu) {
    return fan < static_cast<unsigned>(gpu.spec().fans) ? std::optional(gpu.fan_percent()) : std::nullopt;
  });
}

Return nvmlDeviceGetFanSpeedRPM(nvml::Device device, nvml::FanSpeedInfo* speed) {
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    if (const Return code = calls::check_version(gpu, speed, 1); code != nvml::kSuccess) return code;
    if (speed->fan >= static_cast<unsigned>(gpu.spec().fans)) return nvml::kNotSupported;
    speed->rpm = gpu.fan_percent() * 30;  // 3000 turns a minute at most
    return nvml::kSuccess;
  });
}

}  // namespace gpuwright::sim
