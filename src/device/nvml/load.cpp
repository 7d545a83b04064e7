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

Reading<Ratio> engine_utilization(const Card& card, CardAsker& ask,
                                  const Function<nvml::Return(nvml::Device, unsigned*, unsigned*)>& function) {
  if (!ask.fine()) return Why::no_data;
  unsigned value = 0, period_us = 0;
  const nvml::Return code = ask(function, &value, &period_us);
  return or_in_mig(card, percent(code, value));
}

void read_utilization(Card& card, CardAsker& ask) {
  const Functions& f = ask.functions();
  Gpu& gpu = card.row;
  nvml::Utilization rates{};
  const nvml::Return code = ask(f.nvmlDeviceGetUtilizationRates, &rates);
  // A GPU that was just divided stops telling; its mode is looked at seldom.
  if (code == nvml::kNotSupported && !card.mig_on) read_mig_mode(card, ask);
  gpu.utilization = or_in_mig(card, percent(code, rates.gpu));
  gpu.memory_utilization = or_in_mig(card, percent(code, rates.memory));
  gpu.encoder_utilization = engine_utilization(card, ask, f.nvmlDeviceGetEncoderUtilization);
  gpu.decoder_utilization = engine_utilization(card, ask, f.nvmlDeviceGetDecoderUtilization);
}

}  // namespace gpuwright::device::nvidia
