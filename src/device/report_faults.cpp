#include "device/report_faults.h"

#include <fmt/format.h>

#include <utility>

namespace gpuwright::device {
namespace {

// Counters that only grow while the driver is loaded. `instead`: another counter of the same events, which is not asked
// where this one is known.
struct Counted {
  Reading<std::int64_t> Gpu::*count;
  Reading<std::int64_t> Gpu::*instead;
  Fault::Kind kind;
  std::string_view what;
};
constexpr std::array<Counted, 8> kCounted = {{
    {&Gpu::ecc_uncorrected_aggregate, nullptr, Fault::Kind::ecc, "uncorrected ECC errors"},
    {&Gpu::ecc_uncorrected_volatile, &Gpu::ecc_uncorrected_aggregate, Fault::Kind::ecc,
     "uncorrected ECC errors since the driver was loaded"},
    {&Gpu::ecc_corrected_aggregate, nullptr, Fault::Kind::ecc, "corrected ECC errors"},
    {&Gpu::ecc_corrected_volatile, &Gpu::ecc_corrected_aggregate, Fault::Kind::ecc,
     "corrected ECC errors since the driver was loaded"},
    {&Gpu::remapped_rows_uncorrected, nullptr, Fault::Kind::rows, "rows remapped after uncorrected errors"},
    {&Gpu::remapped_rows_corrected, nullptr, Fault::Kind::rows, "rows remapped after corrected errors"},
    {&Gpu::retired_pages_uncorrected, nullptr, Fault::Kind::rows, "pages retired after uncorrected errors"},
    {&Gpu::retired_pages_corrected, nullptr, Fault::Kind::rows, "pages retired after corrected errors"},
}};

struct Flag {
  Reading<bool> Gpu::*flag;
  std::string_view what;
};
constexpr std::array<Flag, 3> kFlags = {{
    {&Gpu::remapping_pending, "rows wait to be remapped: the GPU has to be reset"},
    {&Gpu::remapping_failed, "a row could not be remapped"},
    {&Gpu::retirement_pending, "pages wait to be retired: the GPU has to be reset"},
}};

}  // namespace

std::string_view to_string(Fault::Kind kind) {
  static constexpr std::array<std::string_view, 5> kNames = {"state", "xid", "ecc", "rows", "recovery"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Fault> FaultWatch::compare(const Gpu& gpu, UnixTime time, int index) {
  now_ = time;
  index_ = index;
  found_.clear();
  compare_state(gpu);
  compare_xids(gpu);
  compare_counts(gpu);
  compare_flags(gpu);
  return std::move(found_);
}

void FaultWatch::add(Fault::Kind kind, std::string text, std::optional<UnixTime> time) {
  found_.push_back({time.value_or(now_), index_, kind, std::move(text)});
}

void FaultWatch::compare_state(const Gpu& gpu) {
  const State before = std::exchange(state_, gpu.state);
  const auto harmless = [](State state) { return state == State::ok || state == State::asleep; };
  if (before == gpu.state || (harmless(before) && harmless(gpu.state))) return;
  std::string text = fmt::format("{} -> {}", to_string(before), to_string(gpu.state));
  if (!harmless(gpu.state) && !gpu.state_detail.empty()) text += ": " + gpu.state_detail;
  add(Fault::Kind::state, std::move(text));
}

// An event has a count of its own and the time when it was last seen. A count that is smaller than before belongs to a
// driver or a reader that began anew.
void FaultWatch::compare_xids(const Gpu& gpu) {
  for (const XidEvent& event : gpu.xids) {
    const auto before = xids_.find(event.code);
    const bool known = before != xids_.end();
    if (known && before->second.time >= event.time && before->second.count >= event.count) continue;
    const int more = known && event.count > before->second.count ? event.count - before->second.count : event.count;
    add(Fault::Kind::xid,
        more > 1 ? fmt::format("Xid {}, {} times", event.code, more) : fmt::format("Xid {}", event.code),
        event.time.nanoseconds > 0 ? std::optional(event.time) : std::nullopt);
    xids_[event.code] = event;
  }
  if (!gpu.last_xid) return;
  const bool is_new = last_xid_ && *last_xid_ != *gpu.last_xid && *gpu.last_xid != 0;
  if (is_new && gpu.xids.empty()) add(Fault::Kind::xid, fmt::format("Xid {}", *gpu.last_xid));
  last_xid_ = *gpu.last_xid;
}

void FaultWatch::compare_counts(const Gpu& gpu) {
  for (const Counted& counted : kCounted) {
    const Reading<std::int64_t>& count = gpu.*counted.count;
    if (!count || (counted.instead != nullptr && (gpu.*counted.instead).known())) continue;
    const auto [entry, is_first] = counts_.try_emplace(std::string(counted.what), *count);
    const std::int64_t before = std::exchange(entry->second, *count);
    if (!is_first && *count > before)
      add(counted.kind, fmt::format("{} more {} ({} in all)", *count - before, counted.what, *count));
  }
}

void FaultWatch::compare_flags(const Gpu& gpu) {
  for (const Flag& flag : kFlags) {
    const Reading<bool>& now = gpu.*flag.flag;
    if (!now) continue;
    const bool before = std::exchange(flags_[std::string(flag.what)], *now);
    if (*now && !before) add(Fault::Kind::rows, std::string(flag.what));
  }
  if (!gpu.recovery_action) return;
  const std::string before = std::exchange(recovery_, *gpu.recovery_action);
  if (recovery_ != before && recovery_ != "none" && !recovery_.empty())
    add(Fault::Kind::recovery, fmt::format("the driver asks to {}", recovery_));
}

}  // namespace gpuwright::device
