// What of a snapshot deserves attention, in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "cli/live/stat_text.h"
#include "cli/live/values.h"

namespace gpuwright::cli {
namespace {

using device::Gpu;
using device::Reading;
using device::State;

// "GPU 3", "GPUs 0-2, 5"
std::string gpus_text(const std::vector<int>& indices) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t end = i + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
    parts.push_back(end - i == 1 ? fmt::format("{}", indices[i]) : fmt::format("{}-{}", indices[i], indices[end - 1]));
    i = end;
  }
  return fmt::format("{} {}", indices.size() == 1 ? "GPU" : "GPUs", fmt::join(parts, ", "));
}

// Remarks of the same words are told once, for all the GPUs that they hold for.
class Collected {
 public:
  void add(const Gpu& gpu, bool bad, std::string text, bool in_row = false) {
    for (One& one : all_)
      if (one.text == text && one.bad == bad) return one.gpus.push_back(gpu.index);
    all_.push_back({bad, std::move(text), in_row, {gpu.index}});
  }
  std::vector<Remark> take() const {
    std::vector<Remark> remarks;
    for (const bool bad : {true, false})
      for (const One& one : all_)
        if (one.bad == bad)
          remarks.push_back({bad, gpus_text(one.gpus) + ": " + one.text, one.in_row ? one.text : std::string()});
    return remarks;
  }

 private:
  struct One {
    bool bad;
    std::string text;
    bool in_row;
    std::vector<int> gpus;
  };
  std::vector<One> all_;
};

void remark_on_state(const Gpu& gpu, Collected& remarks) {
  if (gpu.state == State::ok || gpu.state == State::asleep) return;
  std::string text(to_string(gpu.state));
  if (!gpu.state_detail.empty()) text += ": " + gpu.state_detail;
  remarks.add(gpu, true, std::move(text), true);
}

bool is_true(const Reading<bool>& flag) {
  return flag.value_or(false);
}

void remark_on_health(const Gpu& gpu, Collected& remarks) {
  if (gpu.recovery_action && !gpu.recovery_action->empty() && *gpu.recovery_action != "none")
    remarks.add(gpu, true, "the driver asks to " + *gpu.recovery_action);
  if (gpu.ecc_uncorrected_volatile.value_or(0) > 0)
    remarks.add(
        gpu, true,
        fmt::format("{} uncorrectable memory errors since the driver was loaded", *gpu.ecc_uncorrected_volatile));
  if (is_true(gpu.remapping_failed))
    remarks.add(gpu, true, "remapping a row of memory failed: the board needs service");
  if (is_true(gpu.remapping_pending)) remarks.add(gpu, false, "a row of memory is remapped at the next reset");
  if (is_true(gpu.retirement_pending)) remarks.add(gpu, false, "a page of memory is retired at the next reboot");
  for (const device::XidEvent& xid : gpu.xids)
    remarks.add(gpu, true,
                fmt::format("Xid {} at {}{}", xid.code, local_time(xid.time),
                            xid.count > 1 ? fmt::format(", {} times", xid.count) : ""));
}

// Idle and application clocks are no fault; what holds the clocks down against the work's wish is worth a word.
void remark_on_clocks(const Gpu& gpu, Collected& remarks) {
  if (!gpu.throttle_reasons) return;
  using namespace device::throttle;
  const std::uint64_t urgent = kHardwareSlowdown | kSoftwareThermal | kHardwareThermal | kHardwarePowerBrake;
  const device::ThrottleReasons held{gpu.throttle_reasons->bits & (urgent | kSoftwarePowerCap)};
  if (held.bits == 0) return;
  remarks.add(gpu, (held.bits & urgent) != 0, fmt::format("clocks are held down: {}", fmt::join(names_of(held), ", ")));
}

void remark_on_unknown(const Gpu& gpu, Collected& remarks) {
  std::map<std::string_view, std::vector<std::string_view>> fields_by_reason;
  const auto look = [&](std::string_view name, const auto& reading) {
    if (!reading) fields_by_reason[to_string(reading.why())].push_back(name);
  };
  look("utilization", gpu.utilization);
  look("memory", gpu.memory_used);
  look("temperature", gpu.temperature);
  look("power", gpu.power);
  for (const auto& [reason, fields] : fields_by_reason)
    remarks.add(gpu, false, fmt::format("{} n/a: {}", fmt::join(fields, ", "), reason));
}

void remark_on_unified(const Gpu& gpu, Collected& remarks) {
  if (!gpu.unified_memory || !gpu.memory_used) return;
  std::string text = fmt::format("unified memory: the GPU holds {}", memory_text(*gpu.memory_used));
  if (gpu.host_used) text += fmt::format(", the rest of the machine {}", memory_text(*gpu.host_used));
  if (gpu.memory_free) text += fmt::format(", {} are free", memory_text(*gpu.memory_free));
  remarks.add(gpu, false, std::move(text));
}

// Without persistence mode and without a program that uses the GPU the driver lets go of it after each question, and
// starts it anew for the next: seconds on large machines (wookayin/gpustat#54).
void remark_on_persistence(const device::Snapshot& snapshot, const Gpu& gpu, Collected& remarks) {
  if (gpu.persistence_mode.value_or(true) || gpu.display_active.value_or(true)) return;
  const bool is_used = std::any_of(snapshot.processes.begin(), snapshot.processes.end(),
                                   [&gpu](const device::Process& process) { return process.gpu == gpu.index; });
  if (is_used) return;
  remarks.add(
      gpu, false,
      "persistence mode is off: the driver starts an unused GPU anew for each question; 'sudo nvidia-smi -pm 1' "
      "(or nvidia-persistenced) keeps it ready");
}

}  // namespace

std::vector<Remark> remarks_on(const device::Snapshot& snapshot) {
  Collected remarks;
  for (const Gpu& gpu : snapshot.gpus) {
    remark_on_state(gpu, remarks);
    if (gpu.state != State::ok) continue;
    remark_on_health(gpu, remarks);
    remark_on_clocks(gpu, remarks);
    remark_on_unified(gpu, remarks);
    remark_on_persistence(snapshot, gpu, remarks);
    remark_on_unknown(gpu, remarks);
  }
  std::vector<Remark> all;
  for (const device::SourceReport& report : snapshot.sources)
    if (report.outcome == device::SourceReport::Outcome::failed)
      all.push_back({true, report.source + ": " + report.text + (report.hint.empty() ? "" : " (" + report.hint + ")")});
  for (Remark& remark : remarks.take()) all.push_back(std::move(remark));
  return all;
}

}  // namespace gpuwright::cli
