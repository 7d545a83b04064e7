// Attributes: Linux, Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon, sysfs-driver-intel-xe-sriov (tiles),
// drivers/gpu/drm/i915/gt/intel_gt_sysfs_pm.c (gt/gtN/rps_*, rc6_residency_ms, throttle_reason_*) and
// drivers/gpu/drm/xe/xe_gt_{freq,idle,throttle}.c (tileN/gtM/freq0, gtidle, freq0/throttle).
//
// Neither driver tells how busy the device is without perf events, but both tell for how long it slept. Awake is the
// nearest that everybody may read: busy can only be less.
#include "device/intel/card.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"
#include "device/intel/memory_query.h"
#include "device/sysfs/attribute.h"
#include "device/sysfs/host_memory.h"

namespace gpuwright::device {
namespace {

constexpr double kMicro = 1e-6, kMilli = 1e-3, kMega = 1e6;

// The first of the files that tells, the reason of the first that does not otherwise.
template <class Read>
auto first_of(std::initializer_list<std::string> files, Read&& read) -> decltype(read(std::string())) {
  decltype(read(std::string())) first = Why::not_supported;
  bool is_first = true;
  for (const std::string& file : files) {
    auto reading = read(file);
    if (reading) return reading;
    if (is_first) first = reading;
    is_first = false;
  }
  return first;
}

}  // namespace

IntelCard::IntelCard(const DrmCard& card, const std::string& root)
    : card_(card), root_(root), is_xe_(card.driver == "xe"), is_integrated_(card.pci_address == "0000:00:02.0") {
  facts_.vendor = Vendor::intel;
  facts_.source = card.driver;
  facts_.vendor_index = card.number;
  facts_.unified_memory = is_integrated_;
  read_pci_facts(card, facts_);
  identify(card.id, std::nullopt, facts_);
  for (const std::string& name : numbered_in(card.device + "/drm", "renderD")) render_node_ = "/dev/dri/" + name;
}

void IntelCard::find_gts() {
  has_awake_facts_ = true;
  hwmon_ = find_hwmon(card_.device, card_.driver);
  gts_.clear();
  if (is_xe_) {
    for (const std::string& tile : numbered_in(card_.device, "tile", 64))
      for (const std::string& gt : numbered_in(card_.device + "/" + tile, "gt", 64)) {
        const std::string folder = card_.device + "/" + tile + "/" + gt;
        const std::string name = read_attribute(folder + "/gtidle/name").value_or("");  // "gt0-rc", "gt1-mc"
        gts_.push_back({folder + "/freq0", folder + "/gtidle/idle_residency_ms", folder + "/freq0/throttle/",
                        name.ends_with("-mc")});
      }
    return;
  }
  for (const std::string& gt : numbered_in(card_.folder + "/gt", "gt", 64)) {
    const std::string folder = card_.folder + "/gt/" + gt;
    // i915 gives no name; the media unit of Meteor Lake is the second one.
    gts_.push_back(
        {folder, folder + "/rc6_residency_ms", folder + "/throttle_reason_", is_integrated_ && !gts_.empty()});
  }
  if (gts_.empty()) gts_.push_back({card_.folder, card_.folder + "/power/rc6_residency_ms", {}, false});
}

Gpu IntelCard::read(const SourceOptions& options, std::int64_t monotonic_ns) {
  Gpu gpu = facts_;
  if (!options.wake && is_asleep(card_.device)) {
    gpu.state = State::asleep;
    gpu.state_detail = "runtime-suspended by the kernel; not read, as that would wake it";
    explain_missing(gpu, Why::asleep);
    residency_before_.clear();
    energy_before_.reset();
    return gpu;
  }
  if (!has_awake_facts_) find_gts();
  read_memory(options, gpu);
  read_activity(gpu, monotonic_ns);
  read_clocks(gpu);
  read_power(gpu, monotonic_ns);
  read_sensors(gpu);
  if (is_integrated_)
    gpu.pcie_generation = gpu.pcie_generation_max = gpu.pcie_width = gpu.pcie_width_max = Why::not_supported;
  else
    read_pci_link(card_.device, gpu);
  gpu.throttle_reasons = read_throttling();
  explain_missing(gpu, Why::not_supported);
  forget_unasked(options.wants, gpu);
  return gpu;
}

void IntelCard::read_memory(const SourceOptions& options, Gpu& gpu) const {
  gpu.memory_reserved = Why::not_supported;
  gpu.memory_used = Why::needs_perfmon;
  gpu.memory_free = Why::needs_perfmon;
  if (is_integrated_) {
    const HostMemory host = read_host_memory(root_);
    gpu.memory_total = host.total ? Reading<Bytes>(*host.total) : Why::no_data;
    gpu.memory_free = host.available ? Reading<Bytes>(*host.available) : Why::no_data;
    gpu.memory_used = Why::no_data;  // the sum of the processes, which the source knows
    return;
  }
  std::optional<LocalMemory> memory;
  if (options.root.empty() && !render_node_.empty()) {
    memory = query_local_memory(card_.driver, render_node_);
    if (!memory && ::access(render_node_.c_str(), R_OK | W_OK) != 0 && errno == EACCES)
      gpu.memory_used = gpu.memory_free = Why::no_permission;  // of the node: the group render has it
  }
  if (memory && has_perfmon(read_start("/proc/self/status").text)) {
    gpu.memory_total = memory->total;
    gpu.memory_used = memory->used;
    gpu.memory_free = memory->total - memory->used;
    return;
  }
  if (memory) {
    gpu.memory_total = memory->total;
    return;
  }
  // With what the firmware keeps of it.
  std::optional<Bytes> sum;
  for (const std::string& tile : numbered_in(card_.device, "tile", 64))
    if (const auto bytes = read_bytes(card_.device + "/" + tile + "/physical_vram_size_bytes"))
      sum = Bytes{checked_add(sum.value_or(Bytes{}).count, bytes->count).value_or(INT64_MAX)};
  gpu.memory_total =
      sum ? Reading<Bytes>(*sum)
          : first_of({card_.device + "/lmem_total_bytes", card_.folder + "/lmem_total_bytes"}, read_bytes);
}

Reading<Ratio> IntelCard::awake_share(const std::string& file, std::int64_t now) {
  const auto slept = read_count(file);
  if (!slept) {
    residency_before_.erase(file);
    return slept.why();
  }
  const Sample sample{now, *slept};
  const auto [entry, is_new] = residency_before_.try_emplace(file, sample);
  const Sample before = entry->second;
  if (is_new || now <= before.at) return Why::needs_two_samples;
  entry->second = sample;
  std::int64_t milliseconds = sample.value - before.value;
  constexpr std::int64_t kWrap = std::int64_t{1} << 32;  // i915 counts in 32 bits
  if (milliseconds < 0 && !is_xe_ && before.value < kWrap) milliseconds += kWrap;
  if (milliseconds < 0) return Why::needs_two_samples;  // the driver was reloaded
  const double share = static_cast<double>(milliseconds) * 1e6 / static_cast<double>(now - before.at);
  return Ratio{std::clamp(1 - share, 0.0, 1.0)};
}

void IntelCard::read_activity(Gpu& gpu, std::int64_t now) {
  gpu.utilization = Why::not_supported;
  gpu.decoder_utilization = Why::not_supported;
  for (const Gt& gt : gts_) {
    const auto share = awake_share(gt.residency, now);
    Reading<Ratio>& reading = gt.is_media ? gpu.decoder_utilization : gpu.utilization;
    const bool replaces = !reading || (share && *reading < *share);
    if (replaces) reading = share;
  }
}

void IntelCard::read_clocks(Gpu& gpu) const {
  gpu.graphics_clock = Why::not_supported;
  gpu.graphics_clock_max = Why::not_supported;
  gpu.video_clock = Why::not_supported;
  const auto megahertz = [](const std::string& file) { return read_hertz(file, kMega); };
  for (const Gt& gt : gts_) {
    // act is what the clock is (0 asleep), cur what the driver asked for.
    const auto actual =
        first_of({gt.clocks + "/act_freq", gt.clocks + "/rps_act_freq_mhz", gt.clocks + "/gt_act_freq_mhz",
                  gt.clocks + "/cur_freq", gt.clocks + "/rps_cur_freq_mhz", gt.clocks + "/gt_cur_freq_mhz"},
                 megahertz);
    const auto highest =
        first_of({gt.clocks + "/rp0_freq", gt.clocks + "/rps_RP0_freq_mhz", gt.clocks + "/gt_RP0_freq_mhz",
                  gt.clocks + "/max_freq", gt.clocks + "/gt_max_freq_mhz"},
                 megahertz);
    if (gt.is_media) {
      if (!gpu.video_clock) gpu.video_clock = actual;
      continue;
    }
    if (!gpu.graphics_clock) gpu.graphics_clock = actual;
    if (!gpu.graphics_clock_max) gpu.graphics_clock_max = highest;
  }
  gpu.sm_clock = gpu.graphics_clock;
  gpu.sm_clock_max = gpu.graphics_clock_max;
  gpu.memory_clock = Why::not_supported;
  gpu.memory_clock_max = megahertz(card_.device + "/tile0/memory/freq0/max_freq");
}

// energy1 is the card, energy2 the package; both in microjoules. A counter that steps back began anew.
void IntelCard::read_power(Gpu& gpu, std::int64_t now) {
  const auto energy = first_of({sensor("energy1_input"), sensor("energy2_input")},
                               [](const std::string& file) { return read_count(file); });
  gpu.power = energy ? Why::needs_two_samples : energy.why();
  gpu.energy = energy ? Reading<Joules>(Joules{static_cast<double>(*energy) * kMicro}) : energy.why();
  if (energy && energy_before_ && now > energy_before_->at && *energy >= energy_before_->value) {
    const double seconds = static_cast<double>(now - energy_before_->at) * 1e-9;
    gpu.power = plausible(Watts{static_cast<double>(*energy - energy_before_->value) * kMicro / seconds});
  }
  energy_before_ = energy ? std::optional(Sample{now, *energy}) : std::nullopt;
  const auto watts = [](const std::string& file) -> Reading<Watts> {
    const auto limit = read_watts(file, kMicro);
    if (limit && limit->value == 0) return Why::not_supported;  // 0: the limit is off
    return limit;
  };
  gpu.power_limit = first_of({sensor("power1_max"), sensor("power2_max")}, watts);
  gpu.power_limit_default = first_of({sensor("power1_rated_max"), sensor("power2_rated_max")}, watts);
}

// i915 has one sensor, xe tells package (2) and memory (3).
void IntelCard::read_sensors(Gpu& gpu) const {
  const auto celsius = [](const std::string& file) { return read_celsius(file, kMilli); };
  gpu.temperature = first_of({sensor(is_xe_ ? "temp2_input" : "temp1_input")}, celsius);
  gpu.temperature_shutdown = first_of({sensor("temp2_emergency")}, celsius);
  gpu.temperature_slowdown = first_of({sensor("temp2_crit")}, celsius);
  gpu.memory_temperature = is_xe_ ? celsius(sensor("temp3_input")) : Why::not_supported;
  gpu.fan_rpm = read_count(sensor("fan1_input"), 50000);
}

Reading<ThrottleReasons> IntelCard::read_throttling() const {
  struct Reason {
    std::string_view name;
    std::uint64_t bit;
  };
  static constexpr std::array kReasonNames = {
      Reason{"pl1", throttle::kSoftwarePowerCap},     Reason{"pl2", throttle::kSoftwarePowerCap},
      Reason{"pl4", throttle::kSoftwarePowerCap},     Reason{"vr_tdc", throttle::kSoftwarePowerCap},
      Reason{"thermal", throttle::kHardwareThermal},  Reason{"vr_thermalert", throttle::kHardwareThermal},
      Reason{"prochot", throttle::kHardwareSlowdown}, Reason{"ratl", throttle::kSoftwareThermal},
  };
  Reading<ThrottleReasons> result = Why::not_supported;
  for (const Gt& gt : gts_) {
    if (gt.throttle.empty()) continue;
    const auto status = read_count(gt.throttle + "status");
    if (!status) {
      if (!result) result = status.why();
      continue;
    }
    ThrottleReasons reasons = result.value_or({});
    if (*status != 0)
      for (const Reason& reason : kReasonNames) {
        const auto on = read_count(gt.throttle + (is_xe_ ? "reason_" : "") + std::string(reason.name));
        if (on && *on != 0) reasons.bits |= reason.bit;
      }
    result = reasons;
  }
  return result;
}

}  // namespace gpuwright::device
