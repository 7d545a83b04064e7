#include "device/nvml/answer.h"

#include <cmath>
#include <cstring>

#include "base/text.h"
#include "device/fields.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr std::uint64_t kMostBytes = 1ULL << 50;  // a PiB: no GPU has that, and every sentinel is above
constexpr unsigned kMostMegahertz = 20'000;
constexpr std::uint64_t kMostMilliwatts = 100'000'000;

}  // namespace

Why why_of(nvml::Return code) {
  switch (code) {
    case nvml::kNotSupported:
    case nvml::kFunctionNotFound:
    case nvml::kArgumentVersionMismatch:
    case nvml::kDeprecated:
      return Why::not_supported;
    case nvml::kNoPermission:
      return Why::no_permission;
    case nvml::kNotFound:
    case nvml::kNoData:
    case nvml::kNotReady:
      return Why::no_data;
    case nvml::kGpuIsLost:
    case nvml::kGpuNotFound:
      return Why::lost;
    case nvml::kResetRequired:
      return Why::needs_reset;
    case nvml::kTimeout:
      return Why::unresponsive;
    default:
      return Why::failed;
  }
}

State state_of(nvml::Return code) {
  switch (code) {
    case nvml::kSuccess:
      return State::ok;
    case nvml::kNoPermission:
      return State::no_permission;
    case nvml::kGpuIsLost:
    case nvml::kGpuNotFound:
      return State::lost;
    case nvml::kResetRequired:
      return State::needs_reset;
    case nvml::kTimeout:
      return State::unresponsive;
    default:
      return State::failed;
  }
}

Reading<Ratio> percent(nvml::Return code, unsigned value) {
  if (code != nvml::kSuccess) return why_of(code);
  if (value > 100) return Why::implausible;
  return Ratio{value / 100.0};
}

Reading<Ratio> percent_or_clamped(nvml::Return code, double value, double slack) {
  if (code != nvml::kSuccess) return why_of(code);
  if (!std::isfinite(value) || value < 0 || value > 100 + slack) return Why::implausible;
  return Ratio{std::min(value, 100.0) / 100.0};
}

Reading<std::int64_t> count(nvml::Return code, std::uint64_t value) {
  if (code != nvml::kSuccess) return why_of(code);
  if (is_blank(value)) return Why::implausible;
  return static_cast<std::int64_t>(value);
}

Reading<std::int64_t> count32(nvml::Return code, std::uint32_t value) {
  if (code != nvml::kSuccess) return why_of(code);
  if (is_blank32(value)) return Why::implausible;
  return static_cast<std::int64_t>(value);
}

Reading<Bytes> byte_count(nvml::Return code, std::uint64_t value) {
  if (code != nvml::kSuccess) return why_of(code);
  if (value > kMostBytes) return Why::implausible;
  return Bytes{static_cast<std::int64_t>(value)};
}

Reading<Hertz> megahertz(nvml::Return code, unsigned value) {
  if (code != nvml::kSuccess) return why_of(code);
  if (value > kMostMegahertz) return Why::implausible;
  return Hertz{value * 1e6};
}

Reading<Watts> milliwatts(nvml::Return code, std::uint64_t value) {
  if (code != nvml::kSuccess) return why_of(code);
  if (value > kMostMilliwatts) return Why::implausible;
  return Watts{static_cast<double>(value) / 1000.0};
}

Reading<Celsius> degrees(nvml::Return code, std::int64_t value) {
  if (code != nvml::kSuccess) return why_of(code);
  if (value == -1 || value < -100 || value > 250) return Why::implausible;
  return Celsius{static_cast<double>(value)};
}

Reading<bool> yes_or_no(nvml::Return code, std::int64_t value) {
  if (code != nvml::kSuccess) return why_of(code);
  if (value != 0 && value != 1) return Why::implausible;
  return value == 1;
}

Reading<std::string> text(nvml::Return code, const char* value, std::size_t size) {
  if (code != nvml::kSuccess) return why_of(code);
  const std::string words = printable(trim(std::string_view(value, ::strnlen(value, size))));
  if (words.empty() || words == "N/A" || words == "[N/A]" || words == "0") return Why::no_data;
  return words;
}

void explain_missing(Gpu& gpu, Why why) {
  for_each_reading_of_gpu(gpu, [why](const char*, auto& reading) {
    if (!reading.known()) reading = why;
  });
}

}  // namespace gpuwright::device::nvidia
