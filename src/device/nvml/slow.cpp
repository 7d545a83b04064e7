// What changes seldom: asked every five seconds, and as last told in between.
#include "device/nvml/card.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr double kFanOverdrive = 150;  // "may exceed 100 % in certain cases" (nvml.h): taken as full speed

Reading<std::string> compute_mode(CardAsker& ask) {
  auto mode = nvml::kComputeDefault;
  const nvml::Return code = ask(ask.functions().nvmlDeviceGetComputeMode, &mode);
  if (code != nvml::kSuccess) return why_of(code);
  switch (mode) {
    case nvml::kComputeDefault:
      return std::string("default");
    case nvml::kComputeExclusiveThread:
      return std::string("exclusive thread");
    case nvml::kComputeProhibited:
      return std::string("prohibited");
    case nvml::kComputeExclusiveProcess:
      return std::string("exclusive process");
  }
  return Why::implausible;
}

void read_settings(Gpu& gpu, CardAsker& ask) {
  const Functions& f = ask.functions();
  const auto flag = [&ask](const Function<nvml::Return(nvml::Device, nvml::EnableState*)>& function) {
    nvml::EnableState on = 0;
    const nvml::Return code = ask(function, &on);
    return yes_or_no(code, on);
  };
  gpu.persistence_mode = flag(f.nvmlDeviceGetPersistenceMode);
  gpu.display_active = flag(f.nvmlDeviceGetDisplayActive);
  gpu.compute_mode = compute_mode(ask);
  unsigned limit = 0;
  nvml::Return code = ask(f.nvmlDeviceGetEnforcedPowerLimit, &limit);
  if (try_the_older(code)) code = ask(f.nvmlDeviceGetPowerManagementLimit, &limit);
  gpu.power_limit = milliwatts(code, limit);
}

void read_rare_engines(Card& card, CardAsker& ask) {
  const Functions& f = ask.functions();
  card.row.jpeg_utilization = engine_utilization(card, ask, f.nvmlDeviceGetJpgUtilization);
  card.row.ofa_utilization = engine_utilization(card, ask, f.nvmlDeviceGetOfaUtilization);
  unsigned clock = 0;
  const nvml::Return code = ask(f.nvmlDeviceGetClockInfo, nvml::kClockVideo, &clock);
  card.row.video_clock = megahertz(code, clock);
}

void read_bus(Gpu& gpu, CardAsker& ask) {
  const Functions& f = ask.functions();
  const auto number = [&ask](const Function<nvml::Return(nvml::Device, unsigned*)>& function) {
    unsigned value = 0;
    const nvml::Return code = ask(function, &value);
    return count32(code, value);
  };
  gpu.pcie_generation = number(f.nvmlDeviceGetCurrPcieLinkGeneration);
  gpu.pcie_width = number(f.nvmlDeviceGetCurrPcieLinkWidth);
  nvml::Bar1Memory bar1{};
  const nvml::Return code = ask(f.nvmlDeviceGetBAR1MemoryInfo, &bar1);
  gpu.bar1_total = byte_count(code, bar1.total);
  gpu.bar1_used = byte_count(code, bar1.used);
}

}  // namespace

void read_slow(Card& card, CardAsker& ask, std::int64_t now_ns) {
  if (!due(card.slow_read_ns, now_ns, kSlowPeriod)) return;
  card.slow_read_ns = now_ns;
  read_settings(card.row, ask);
  if (ask.fine()) read_bus(card.row, ask);
  if (ask.fine()) read_rare_engines(card, ask);
}

void tell_fan(Card& card, const DearAnswers& dear) {
  if (!dear.fan_asked) return;
  card.row.fan = percent_or_clamped(dear.fan_code, dear.fan_percent, kFanOverdrive);
  card.row.fan_rpm = count32(dear.rpm_code, dear.fan_rpm);
  card.fanless = dear.fan_code == nvml::kNotSupported &&
                 (dear.rpm_code == nvml::kNotSupported || dear.rpm_code == nvml::kFunctionNotFound);
}

}  // namespace gpuwright::device::nvidia
