// How busy a GPU is.
#include "device/nvml/card.h"

namespace gpuwright::device::nvidia {
namespace {

// Drivers do not tell these of a GPU that is cut into instances.
Reading<Ratio> or_in_mig(const Card& card, Reading<Ratio> reading) {
  if (card.mig_on && !reading && (reading.why() == Why::not_supported || reading.why() == Why::no_data))
    return Why::in_mig_mode;
  return reading;
}

}  // namespace

void read_utilization(Card& card, CardAsker& ask) {
  const Functions& f = ask.functions();
  Gpu& gpu = card.row;
  nvml::Utilization rates{};
  const nvml::Return code = ask(f.nvmlDeviceGetUtilizationRates, &rates);
  gpu.utilization = or_in_mig(card, percent(code, rates.gpu));
  gpu.memory_utilization = or_in_mig(card, percent(code, rates.memory));
  const auto engine = [&](const Function<nvml::Return(nvml::Device, unsigned*, unsigned*)>& function) {
    if (!ask.fine()) return Reading<Ratio>(Why::no_data);
    unsigned value = 0, period_us = 0;
    const nvml::Return told = ask(function, &value, &period_us);
    return or_in_mig(card, percent(told, value));
  };
  gpu.encoder_utilization = engine(f.nvmlDeviceGetEncoderUtilization);
  gpu.decoder_utilization = engine(f.nvmlDeviceGetDecoderUtilization);
  gpu.jpeg_utilization = engine(f.nvmlDeviceGetJpgUtilization);
  gpu.ofa_utilization = engine(f.nvmlDeviceGetOfaUtilization);
}

}  // namespace gpuwright::device::nvidia
