// amdgpu's gpu_metrics: one binary table that the GPU's firmware fills in, in a layout that its first bytes name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "device/snapshot.h"

namespace gpuwright::device {

inline constexpr int kXgmiLinks = 8;

// How long each limiter has held the clocks, in the firmware's ticks since it started.
struct ThrottleResidency {
  std::uint32_t prochot = 0, power = 0, socket_thermal = 0, regulator_thermal = 0, memory_thermal = 0;
};

struct GpuMetrics {
  int format = 0, content = 0;  // version 1.3 is 1, 3
  bool is_apu = false;          // formats 2 and 3 are those of APUs

  std::optional<Celsius> edge, hotspot, memory_temperature;
  std::optional<Ratio> graphics_activity, memory_activity, media_activity;
  std::optional<Watts> power;
  std::optional<Joules> energy;
  std::optional<Hertz> graphics_clock, memory_clock, video_clock;
  std::optional<std::int64_t> pcie_width, pcie_generation, pcie_replays, fan_rpm;
  std::optional<ThrottleReasons> throttle_reasons;
  std::optional<ThrottleResidency> throttle_residency;
  // Bytes since the driver was loaded, of each link.
  std::array<std::optional<std::int64_t>, kXgmiLinks> xgmi_read, xgmi_written;
};

// Nothing for a table that is cut off or of a version that is not known. Fields that the firmware does not fill in
// (all bits set) are empty.
std::optional<GpuMetrics> parse_gpu_metrics(std::string_view bytes);

// What held the clocks between two reads.
ThrottleReasons throttled_between(const ThrottleResidency& before, const ThrottleResidency& after);

}  // namespace gpuwright::device
