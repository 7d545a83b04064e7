// Clocks, what holds them down, and temperature.
#include "device/nvml/card.h"

namespace gpuwright::device::nvidia {
namespace {

Reading<Celsius> temperature(CardAsker& ask) {
  const Functions& f = ask.functions();
  nvml::TemperatureV1 reading{nvml::version_of<nvml::TemperatureV1>(1), nvml::kTemperatureGpu, 0};
  nvml::Return code = ask(f.nvmlDeviceGetTemperatureV, &reading);
  if (!try_the_older(code)) return degrees(code, reading.temperature);
  unsigned value = 0;
  code = ask(f.nvmlDeviceGetTemperature, nvml::kTemperatureGpu, &value);
  return degrees(code, static_cast<int>(value));
}

Reading<ThrottleReasons> throttle_reasons(CardAsker& ask) {
  const Functions& f = ask.functions();
  unsigned long long bits = 0;
  nvml::Return code = ask(f.nvmlDeviceGetCurrentClocksEventReasons, &bits);
  if (try_the_older(code)) code = ask(f.nvmlDeviceGetCurrentClocksThrottleReasons, &bits);
  if (code != nvml::kSuccess) return why_of(code);
  if (is_blank(bits)) return Why::implausible;
  return ThrottleReasons{bits};
}

Reading<std::int64_t> performance_state(CardAsker& ask) {
  auto state = nvml::kPerformanceStateUnknown;
  const nvml::Return code = ask(ask.functions().nvmlDeviceGetPerformanceState, &state);
  if (code != nvml::kSuccess) return why_of(code);
  if (state == nvml::kPerformanceStateUnknown) return Why::no_data;
  if (state < nvml::kPerformanceStateMax || state > nvml::kPerformanceStateMin) return Why::implausible;
  return static_cast<std::int64_t>(state);
}

}  // namespace

void read_clocks(Card& card, CardAsker& ask) {
  Gpu& gpu = card.row;
  const auto clock = [&ask](nvml::ClockType type) {
    unsigned value = 0;
    const nvml::Return code = ask(ask.functions().nvmlDeviceGetClockInfo, type, &value);
    return megahertz(code, value);
  };
  gpu.sm_clock = clock(nvml::kClockSm);
  gpu.graphics_clock = clock(nvml::kClockGraphics);
  gpu.memory_clock = clock(nvml::kClockMemory);
  if (!ask.fine()) return;
  gpu.performance_state = performance_state(ask);
  gpu.throttle_reasons = throttle_reasons(ask);
  gpu.temperature = temperature(ask);
}

}  // namespace gpuwright::device::nvidia
