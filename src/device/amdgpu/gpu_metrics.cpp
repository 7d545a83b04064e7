// Layouts: struct gpu_metrics_vX_Y of Linux, drivers/gpu/drm/amd/include/kgd_pp_interface.h (v6.17); 1.6 exists with
// and without the activity of the media engines, told apart by the size. Only fields with a unit that the header states
// or that all firmwares agree upon are taken: the power of 2.1 to 2.3 is in watts or milliwatts, as the firmware likes.
// 1.0 and 2.0 ("not recommended, not naturally aligned") tell nothing that other files do not.
#include "device/amdgpu/gpu_metrics.h"

#include <algorithm>
#include <cstring>

#include "device/sysfs/attribute.h"

namespace gpuwright::device {
namespace {

constexpr int kNone = -1;

// Offsets of the fields, kNone where the version lacks one. Instances lie side by side.
struct Layout {
  int format = 0, content = 0;
  int least_size = 0, most_size = 0;  // of the whole table
  int edge = kNone, hotspot = kNone, memory_temperature = kNone;
  int graphics_activity = kNone, memory_activity = kNone, media_activity = kNone, media_engines = 0;
  int power = kNone, energy = kNone;
  int graphics_clock = kNone, graphics_clocks = 1, memory_clock = kNone, video_clock = kNone, video_clocks = 1;
  int fan_rpm = kNone, pcie_width = kNone, pcie_speed = kNone, pcie_replays = kNone;
  int independent_throttle = kNone, residency = kNone;
  int xgmi_read = kNone, xgmi_written = kNone;
};

constexpr int kAnySize = 65535;

constexpr Layout discrete(int content, int size) {
  Layout layout;
  layout.format = 1;
  layout.content = content;
  layout.least_size = size;
  layout.most_size = kAnySize;
  layout.edge = 4;
  layout.hotspot = 6;
  layout.memory_temperature = 8;
  layout.graphics_activity = 16;
  layout.memory_activity = 18;
  layout.media_activity = 20;
  layout.media_engines = 1;
  layout.power = 22;
  layout.graphics_clock = 54;
  layout.memory_clock = 58;
  layout.video_clock = 60;
  layout.fan_rpm = 72;
  layout.pcie_width = 74;
  layout.pcie_speed = 76;
  return layout;
}

// Instinct MI300 and later: from the energy on, everything moves with what was put before it.
struct Instinct {
  int content, least_size, most_size, energy, residency, pcie_width, pcie_replays, xgmi_read, graphics_clock;
  int media_activity = kNone;
};
constexpr Layout instinct(const Instinct& at) {
  Layout layout;
  layout.format = 1;
  layout.content = at.content;
  layout.least_size = at.least_size;
  layout.most_size = at.most_size;
  layout.hotspot = 4;
  layout.memory_temperature = 6;
  layout.power = 10;
  layout.graphics_activity = 12;
  layout.memory_activity = 14;
  layout.media_activity = at.media_activity;
  layout.media_engines = 4;
  layout.energy = at.energy;
  layout.residency = at.residency;
  layout.pcie_width = at.pcie_width;
  layout.pcie_speed = at.pcie_width + 2;
  layout.pcie_replays = at.pcie_replays;
  layout.xgmi_read = at.xgmi_read;
  layout.xgmi_written = at.xgmi_read + 8 * kXgmiLinks;
  layout.graphics_clock = at.graphics_clock;
  layout.graphics_clocks = 8;
  layout.video_clock = at.graphics_clock + 24;
  layout.video_clocks = 4;
  layout.memory_clock = at.graphics_clock + 40;
  return layout;
}

constexpr Layout apu(int content, int size) {
  Layout layout;
  layout.format = 2;
  layout.content = content;
  layout.least_size = size;
  layout.most_size = kAnySize;
  layout.graphics_clock = 76;
  layout.memory_clock = 80;
  layout.video_clock = 84;
  if (content >= 2) layout.independent_throttle = 120;
  return layout;
}

constexpr Layout apu_3_0() {
  Layout layout;
  layout.format = 3;
  layout.content = 0;
  layout.least_size = 264;
  layout.most_size = kAnySize;
  layout.graphics_activity = 42;
  layout.media_activity = 44;
  layout.media_engines = 1;
  layout.graphics_clock = 174;
  layout.video_clock = 184;
  layout.memory_clock = 186;
  return layout;
}

constexpr Layout with_independent_throttle(Layout layout) {
  layout.independent_throttle = 112;
  return layout;
}

constexpr std::array kLayouts = {
    discrete(1, 80),
    discrete(2, 104),
    with_independent_throttle(discrete(3, 120)),
    instinct({4, 288, kAnySize, 24, kNone, 48, 88, 104, 240, 16}),
    instinct({5, 360, kAnySize, 88, kNone, 112, 152, 176, 312, 16}),
    instinct({6, 384, 1000, 88, 108, 136, 176, 200, 336, 16}),
    instinct({6, 1001, kAnySize, 16, 36, 60, 104, 128, 264}),
    instinct({7, 340, kAnySize, 24, 44, 68, 112, 136, 296}),
    instinct({8, 340, kAnySize, 24, 44, 68, 112, 136, 296}),
    apu(1, 120),
    apu(2, 128),
    apu(3, 152),
    apu(4, 160),
    apu_3_0(),
};

class Table {
 public:
  explicit Table(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  std::optional<Number> at(int offset) const {
    if (offset < 0 || static_cast<std::size_t>(offset) + sizeof(Number) > bytes_.size()) return std::nullopt;
    Number value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);  // little-endian, as all machines with such a GPU
    if (value == static_cast<Number>(-1)) return std::nullopt;
    return value;
  }
  // The largest of instances that lie side by side; those that rest tell all ones or 0.
  std::optional<std::uint16_t> largest_at(int offset, int instances) const {
    std::optional<std::uint16_t> largest;
    for (int i = 0; i < instances && offset >= 0; ++i) largest = std::max(largest, at<std::uint16_t>(offset + 2 * i));
    return largest;
  }

 private:
  std::string_view bytes_;
};

template <class Unit>
std::optional<Unit> checked(std::optional<double> value) {
  if (!value) return std::nullopt;
  return plausible(Unit{*value}).optional();
}

std::optional<double> times(std::optional<std::uint16_t> number, double unit) {
  if (!number) return std::nullopt;
  return *number * unit;
}

template <class Number>
std::optional<std::int64_t> within(std::optional<Number> number, std::int64_t least, std::int64_t most) {
  if (!number || static_cast<std::uint64_t>(*number) > static_cast<std::uint64_t>(most)) return std::nullopt;
  const auto value = static_cast<std::int64_t>(*number);
  return value >= least ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> generation_of_speed(std::optional<std::uint16_t> tenths_of_gts) {
  static constexpr std::array<std::uint16_t, 6> kSpeeds = {25, 50, 80, 160, 320, 640};
  const auto found = tenths_of_gts ? std::find(kSpeeds.begin(), kSpeeds.end(), *tenths_of_gts) : kSpeeds.end();
  if (found == kSpeeds.end()) return std::nullopt;
  return found - kSpeeds.begin() + 1;
}

// SMU_THROTTLER_* of drivers/gpu/drm/amd/pm/swsmu/inc/amdgpu_smu.h: power limits are bits 0 to 7, currents 16 to 23,
// temperatures 32 to 43, regulators and PROCHOT 44 to 47, PPM and FIT 56 and 57.
ThrottleReasons reasons_of(std::uint64_t status) {
  ThrottleReasons reasons;
  if (status & 0x0000'0000'00ff'00ff) reasons.bits |= throttle::kSoftwarePowerCap;
  if (status & 0x0000'0fff'0000'0000) reasons.bits |= throttle::kSoftwareThermal;
  if (status & 0x0300'f000'0000'0000) reasons.bits |= throttle::kHardwareSlowdown;
  return reasons;
}

void read_activity(const Table& table, const Layout& layout, GpuMetrics& metrics) {
  metrics.graphics_activity = checked<Ratio>(times(table.at<std::uint16_t>(layout.graphics_activity), 0.01));
  metrics.memory_activity = checked<Ratio>(times(table.at<std::uint16_t>(layout.memory_activity), 0.01));
  metrics.media_activity = checked<Ratio>(times(table.largest_at(layout.media_activity, layout.media_engines), 0.01));
}

void read_clocks(const Table& table, const Layout& layout, GpuMetrics& metrics) {
  constexpr double kMegahertz = 1e6;
  metrics.graphics_clock =
      checked<Hertz>(times(table.largest_at(layout.graphics_clock, layout.graphics_clocks), kMegahertz));
  metrics.memory_clock = checked<Hertz>(times(table.at<std::uint16_t>(layout.memory_clock), kMegahertz));
  metrics.video_clock = checked<Hertz>(times(table.largest_at(layout.video_clock, layout.video_clocks), kMegahertz));
}

void read_links(const Table& table, const Layout& layout, GpuMetrics& metrics) {
  metrics.pcie_width = within(table.at<std::uint16_t>(layout.pcie_width), 1, 32);
  metrics.pcie_generation = generation_of_speed(table.at<std::uint16_t>(layout.pcie_speed));
  metrics.pcie_replays = within(table.at<std::uint64_t>(layout.pcie_replays), 0, INT64_MAX);
  if (layout.xgmi_read == kNone) return;
  for (int i = 0; i < kXgmiLinks; ++i) {
    const auto bytes = [&](int offset) {
      const auto kib = within(table.at<std::uint64_t>(offset + 8 * i), 0, INT64_MAX / 1024);
      return kib ? std::optional(*kib * 1024) : std::nullopt;
    };
    metrics.xgmi_read[static_cast<std::size_t>(i)] = bytes(layout.xgmi_read);
    metrics.xgmi_written[static_cast<std::size_t>(i)] = bytes(layout.xgmi_written);
  }
}

void read_residency(const Table& table, const Layout& layout, GpuMetrics& metrics) {
  if (layout.residency == kNone) return;
  const auto at = [&](int field) { return table.at<std::uint32_t>(layout.residency + 4 * field); };
  const auto prochot = at(0), power = at(1), socket = at(2), regulator = at(3), memory = at(4);
  if (!prochot || !power || !socket || !regulator || !memory) return;
  metrics.throttle_residency = ThrottleResidency{*prochot, *power, *socket, *regulator, *memory};
}

}  // namespace

std::optional<GpuMetrics> parse_gpu_metrics(std::string_view bytes) {
  constexpr std::size_t kHeader = 4;
  if (bytes.size() < kHeader) return std::nullopt;
  std::uint16_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  const int format = static_cast<unsigned char>(bytes[2]), content = static_cast<unsigned char>(bytes[3]);
  const auto layout = std::find_if(kLayouts.begin(), kLayouts.end(), [&](const Layout& row) {
    return row.format == format && row.content == content && size >= row.least_size && size <= row.most_size;
  });
  if (layout == kLayouts.end() || bytes.size() < size) return std::nullopt;

  const Table table(bytes.substr(0, size));
  GpuMetrics metrics;
  metrics.format = format;
  metrics.content = content;
  metrics.is_apu = format != 1;
  metrics.edge = checked<Celsius>(times(table.at<std::uint16_t>(layout->edge), 1));
  metrics.hotspot = checked<Celsius>(times(table.at<std::uint16_t>(layout->hotspot), 1));
  metrics.memory_temperature = checked<Celsius>(times(table.at<std::uint16_t>(layout->memory_temperature), 1));
  metrics.power = checked<Watts>(times(table.at<std::uint16_t>(layout->power), 1));
  if (const auto ticks = table.at<std::uint64_t>(layout->energy))
    metrics.energy = Joules{static_cast<double>(*ticks) / 65536};
  metrics.fan_rpm = within(table.at<std::uint16_t>(layout->fan_rpm), 0, 50000);
  if (const auto status = table.at<std::uint64_t>(layout->independent_throttle))
    metrics.throttle_reasons = reasons_of(*status);
  read_activity(table, *layout, metrics);
  read_clocks(table, *layout, metrics);
  read_links(table, *layout, metrics);
  read_residency(table, *layout, metrics);
  return metrics;
}

ThrottleReasons throttled_between(const ThrottleResidency& before, const ThrottleResidency& after) {
  ThrottleReasons reasons;
  if (after.power != before.power) reasons.bits |= throttle::kSoftwarePowerCap;
  if (after.socket_thermal != before.socket_thermal || after.memory_thermal != before.memory_thermal)
    reasons.bits |= throttle::kSoftwareThermal;
  if (after.prochot != before.prochot || after.regulator_thermal != before.regulator_thermal)
    reasons.bits |= throttle::kHardwareSlowdown;
  return reasons;
}

}  // namespace gpuwright::device
