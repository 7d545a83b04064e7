#include "sim/gpu_view.h"

#include <algorithm>
#include <cmath>

namespace gpuwright::sim {
namespace {

constexpr double kIdleLoad = 0.005;
constexpr double kBootSeconds = 3600;   // that the driver had been loaded before the host's start
constexpr double kThermalSeconds = 20;  // a heat sink follows the mean load of so long
constexpr double kPcieSeconds = 0.02;   // over which drivers measure PCIe traffic
constexpr unsigned kNoInstance = 0xFFFFFFFF;
constexpr int kClockStep = 15;  // MHz
constexpr std::uint64_t kIdleReason = 0x1, kPowerCapReason = 0x4;

bool works_on(const ProcessSpec& process, int gpu) {
  return std::find(process.gpus.begin(), process.gpus.end(), gpu) != process.gpus.end();
}

}  // namespace

GpuView::GpuView(const Host::State& host, int index, int instance, double seconds)
    : host_(&host),
      spec_(&host.scenario.gpus[static_cast<std::size_t>(index)]),
      index_(index),
      instance_(instance),
      time_(seconds) {}

const MigSpec* GpuView::instance() const {
  return instance_ < 0 ? nullptr : &spec_->instances[static_cast<std::size_t>(instance_)];
}

std::vector<int> GpuView::instances() const {
  std::vector<int> positions;
  for (std::size_t i = 0; i < spec_->instances.size(); ++i)
    if (spec_->instances[i].interval.holds(time_)) positions.push_back(static_cast<int>(i));
  return positions;
}

Condition GpuView::condition() const {
  Condition worst = Condition::ok;
  const auto note = [&](FaultKind kind, Condition condition) {
    if (worst == Condition::ok) for_each_fault(kind, [&](const Fault&) { worst = condition; });
  };
  note(FaultKind::lost, Condition::lost);
  note(FaultKind::no_permission, Condition::no_permission);
  note(FaultKind::needs_reset, Condition::needs_reset);
  note(FaultKind::failed, Condition::failed);
  return worst;
}

std::vector<GpuView::Process> GpuView::processes(std::uint8_t kinds) const {
  std::vector<Process> found;
  for (const ProcessSpec& process : scenario().processes) {
    if ((process.kind & kinds) == 0 || !process.interval.holds(time_) || !works_on(process, index_)) continue;
    if (instance_ >= 0 && process.instance != instance_) continue;
    Process entry{&process, kNoInstance, kNoInstance};
    if (process.instance) {
      const MigSpec& instance = spec_->instances[static_cast<std::size_t>(*process.instance)];
      if (!instance.interval.holds(time_)) continue;
      entry.gpu_instance = static_cast<unsigned>(instance.gpu_instance);
      entry.compute_instance = static_cast<unsigned>(instance.compute_instance);
    }
    found.push_back(entry);
  }
  return found;
}

std::int64_t GpuView::memory_total() const {
  return instance_ < 0 ? spec_->memory_total : instance()->profile.memory.count;
}

std::int64_t GpuView::memory_reserved() const {
  if (instance_ < 0) return spec_->memory_reserved;
  const double share = static_cast<double>(memory_total()) / static_cast<double>(spec_->memory_total);
  return static_cast<std::int64_t>(static_cast<double>(spec_->memory_reserved) * share);
}

std::int64_t GpuView::memory_used() const {
  std::int64_t used = instance_ < 0 ? spec_->memory_other : 0;
  for (const Process& process : processes(0xff)) used += process.spec->memory;
  return std::min(used, memory_total() - memory_reserved());
}

bool GpuView::idle() const {
  return spec_->load.at(time_) < kIdleLoad && spec_->encoder.at(time_) < kIdleLoad &&
         spec_->decoder.at(time_) < kIdleLoad;
}

unsigned GpuView::percent(const Curve& curve) const {
  return static_cast<unsigned>(std::lround(std::clamp(curve.at(time_), 0.0, 1.0) * 100));
}

unsigned GpuView::graphics_mhz() const {
  const int full = spec_->graphics_clock.max_mhz.value_or(0), low = spec_->graphics_clock.idle_mhz.value_or(0);
  if (idle()) return static_cast<unsigned>(low);
  double share = 1;
  for_each_fault(FaultKind::throttle, [&share](const Fault& fault) { share = std::min(share, fault.clock_share); });
  const int clock = static_cast<int>(full * share) / kClockStep * kClockStep;
  return static_cast<unsigned>(share >= 1 ? full : std::max(low, clock));
}

unsigned GpuView::memory_mhz() const {
  const ClockSpec& clock = spec_->memory_clock;
  return static_cast<unsigned>((performance_state() == 0 ? clock.max_mhz : clock.idle_mhz).value_or(0));
}

unsigned GpuView::video_mhz() const {
  const ClockSpec& clock = spec_->video_clock;
  return static_cast<unsigned>((idle() ? clock.idle_mhz : clock.max_mhz).value_or(0));
}

std::uint64_t GpuView::throttle_reasons() const {
  std::uint64_t reasons = idle() ? kIdleReason : 0;
  if (spec_->power_limit > 0 && watts() >= spec_->power_limit) reasons |= kPowerCapReason;
  for_each_fault(FaultKind::throttle, [&reasons](const Fault& fault) { reasons |= fault.reasons; });
  return reasons;
}

std::uint64_t GpuView::throttled_ns(std::uint64_t reasons) const {
  double seconds = 0;
  for (const Fault& fault : scenario().faults)
    if (fault.kind == FaultKind::throttle && fault.concerns(index_) && (fault.reasons & reasons) != 0)
      seconds += std::max(0.0, std::min(time_, fault.interval.end) - fault.interval.start);
  return static_cast<std::uint64_t>(seconds * 1e9);
}

int GpuView::performance_state() const {
  const bool always_fast = spec_->ecc.value_or(false);
  return always_fast || !idle() ? 0 : 8;
}

double GpuView::watts() const {
  return spec_->idle_watts + (spec_->busy_watts - spec_->idle_watts) * spec_->load.at(time_);
}

double GpuView::average_watts() const {
  return spec_->idle_watts + (spec_->busy_watts - spec_->idle_watts) * spec_->load.mean(time_ - 1, time_);
}

double GpuView::energy_joules() const {
  return spec_->idle_watts * (kBootSeconds + time_) +
         (spec_->busy_watts - spec_->idle_watts) * spec_->load.integral(time_);
}

double GpuView::celsius() const {
  const double load = spec_->load.mean(time_ - kThermalSeconds, time_);
  return spec_->idle_celsius + (spec_->busy_celsius - spec_->idle_celsius) * load;
}

double GpuView::memory_celsius() const {
  return celsius() + 8;
}

unsigned GpuView::fan_percent() const {
  const double share = std::clamp((celsius() - 40) / 40, 0.0, 1.0);  // from 30 % at 40 degrees to all at 80
  return static_cast<unsigned>(std::lround(30 + 70 * share));
}

std::uint64_t GpuView::counter(const Curve& bytes_per_second) const {
  return static_cast<std::uint64_t>(std::max(0.0, bytes_per_second.integral(time_)));
}

double GpuView::rate(const Curve& bytes_per_second) const {
  return bytes_per_second.mean(time_ - kPcieSeconds, time_);
}

GpuView::Errors GpuView::errors(FaultKind kind) const {
  Errors sum;
  for (const Fault& fault : scenario().faults) {
    if (fault.kind != kind || !fault.concerns(index_) || fault.interval.start > time_) continue;
    sum.corrected += static_cast<std::uint64_t>(fault.corrected);
    sum.uncorrected += static_cast<std::uint64_t>(fault.uncorrected);
    sum.pending = sum.pending || fault.pending;
    sum.failure = sum.failure || fault.failure;
  }
  return sum;
}

}  // namespace gpuwright::sim
