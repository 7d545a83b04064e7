#include "device/nvml/gpm.h"

#include <array>
#include <utility>

#include "device/nvml/answer.h"

namespace gpuwright::device::nvidia {
namespace {

// "The interval between these two calls should be greater than 100ms" (nvml.h, nvmlGpmMetricsGet).
constexpr std::int64_t kShortest = 100'000'000;
constexpr std::array kMetrics = {nvml::gpm::kGraphicsUtilization, nvml::gpm::kSmUtilization, nvml::gpm::kSmOccupancy,
                                 nvml::gpm::kAnyTensorUtilization};
// SM activity of a MIG instance has been seen above 100 % (NVIDIA/DCGM#152).
constexpr double kSlack = 25;

Activity all(Why why) {
  return {why, why, why, why};
}

}  // namespace

nvml::Return GpmMeter::prepare(Asker& ask, nvml::Device device) {
  const Functions& f = ask.functions();
  if (!supported_) {
    nvml::GpmSupport support{nvml::gpm::kSupportVersion, 0};
    const nvml::Return code = ask(f.nvmlGpmQueryDeviceSupport, device, &support);
    supported_ = code == nvml::kSuccess && support.supported == 0 ? nvml::kNotSupported : code;
  }
  if (*supported_ != nvml::kSuccess) return *supported_;
  for (nvml::GpmSample* sample : {&earlier_, &later_})
    if (*sample == nullptr)
      if (const nvml::Return code = ask(f.nvmlGpmSampleAlloc, sample); code != nvml::kSuccess) {
        *sample = nullptr;
        return code;
      }
  return nvml::kSuccess;
}

Activity GpmMeter::read(Asker& ask, nvml::Device device, std::optional<unsigned> gpu_instance, std::int64_t now_ns) {
  if (const nvml::Return code = prepare(ask, device); code != nvml::kSuccess) return all(why_of(code));
  if (has_earlier_ && now_ns >= sampled_ns_ && now_ns - sampled_ns_ < kShortest) return last_;
  const Functions& f = ask.functions();
  const nvml::Return code = gpu_instance ? ask(f.nvmlGpmMigSampleGet, device, *gpu_instance, later_)
                                         : ask(f.nvmlGpmSampleGet, device, later_);
  if (code != nvml::kSuccess) {
    has_earlier_ = false;
    return all(why_of(code));
  }
  last_ = has_earlier_ ? compare(ask) : all(Why::needs_two_samples);
  std::swap(earlier_, later_);
  has_earlier_ = true;
  sampled_ns_ = now_ns;
  return last_;
}

Activity GpmMeter::compare(Asker& ask) {
  // 19 KB of which the library looks at four entries.
  const auto request = std::make_unique<nvml::GpmMetricsGet>();
  request->version = nvml::gpm::kMetricsGetVersion;
  request->count = kMetrics.size();
  request->earlier = earlier_;
  request->later = later_;
  for (std::size_t i = 0; i < kMetrics.size(); ++i) request->metrics[i].id = kMetrics[i];
  const nvml::Return code = ask(ask.functions().nvmlGpmMetricsGet, request.get());
  if (code != nvml::kSuccess) return all(why_of(code));
  const auto value = [&request](std::size_t i) {
    return percent_or_clamped(request->metrics[i].result, request->metrics[i].value, kSlack);
  };
  return {value(0), value(1), value(2), value(3)};
}

void GpmMeter::release(Asker& ask) {
  for (nvml::GpmSample* sample : {&earlier_, &later_}) {
    if (*sample != nullptr) ask(ask.functions().nvmlGpmSampleFree, *sample);
    *sample = nullptr;
  }
  has_earlier_ = false;
}

}  // namespace gpuwright::device::nvidia
