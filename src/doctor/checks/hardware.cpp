// What the GPUs tell of their own health.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/checks/names.h"
#include "doctor/kernel_lines.h"

namespace gpuwright::doctor {
namespace {

using device::Gpu;
namespace throttle = device::throttle;

std::optional<Outcome> no_question(const Machine& machine) {
  if (machine.snapshot() == nullptr) return unknown("the drivers were not asked");
  if (machine.snapshot()->gpus.empty()) return not_applicable("no driver tells of a GPU");
  return std::nullopt;
}

Problem& of_gpu(Outcome& outcome, std::string_view id, const Gpu& gpu) {
  return outcome.wrong(id).item("gpus", name_of(gpu)).fact("index", gpu.vendor_index);
}

Outcome check_memory(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  Outcome outcome = fine();
  bool known = false;
  for (const Gpu& gpu : machine.snapshot()->gpus) {
    known = known || gpu.ecc_enabled.known() || gpu.remapping_failed.known();
    if (gpu.remapping_failed.value_or(false))
      of_gpu(outcome, "hw.remap_failed", gpu).seen("NVML", "row remapping failed");
    else if (gpu.remapping_pending.value_or(false) || gpu.retirement_pending.value_or(false))
      of_gpu(outcome, "hw.remap_pending", gpu).seen("NVML", "row remapping or page retirement pending");
    else if (gpu.ecc_uncorrected_volatile.value_or(0) > 0)
      of_gpu(outcome, "hw.ecc", gpu)
          .fact("errors", *gpu.ecc_uncorrected_volatile)
          .seen("NVML",
                fmt::format("{} uncorrected ECC errors since the driver was loaded", *gpu.ecc_uncorrected_volatile));
  }
  return known || outcome.state == State::wrong ? outcome : not_applicable("no ECC");
}

Outcome check_recovery(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  Outcome outcome = fine();
  bool known = false;
  for (const Gpu& gpu : machine.snapshot()->gpus) {
    if (!gpu.recovery_action) continue;
    known = true;
    if (*gpu.recovery_action != "none")
      of_gpu(outcome, "hw.recovery", gpu)
          .fact("action", *gpu.recovery_action)
          .seen("NVML", "recovery action: " + *gpu.recovery_action);
  }
  return known ? outcome : unknown("the driver does not tell");
}

// A power cap that holds a GPU at its limit is as it should be; one that holds it well below is not.
bool capped_below_limit(const Gpu& gpu) {
  constexpr double kWellBelow = 0.8;
  return gpu.power && gpu.power_limit && gpu.power_limit->value > 0 &&
         gpu.power->value < kWellBelow * gpu.power_limit->value;
}

Outcome check_throttle(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  Outcome outcome = fine();
  bool known = false;
  for (const Gpu& gpu : machine.snapshot()->gpus) {
    if (!gpu.throttle_reasons) continue;
    known = true;
    const std::uint64_t bits = gpu.throttle_reasons->bits;
    const auto names = fmt::format("{}", fmt::join(names_of(*gpu.throttle_reasons), ", "));
    if ((bits & throttle::kHardwarePowerBrake) != 0)
      of_gpu(outcome, "hw.power_brake", gpu).seen("NVML", names);
    else if ((bits & (throttle::kHardwareThermal | throttle::kSoftwareThermal)) != 0)
      of_gpu(outcome, "hw.hot", gpu).seen("NVML", names);
    else if ((bits & throttle::kHardwareSlowdown) != 0)
      of_gpu(outcome, "hw.slowdown", gpu).seen("NVML", names);
    else if ((bits & throttle::kSoftwarePowerCap) != 0 && capped_below_limit(gpu))
      of_gpu(outcome, "hw.power_cap", gpu)
          .seen("NVML", fmt::format("{}, {:.0f} W of {:.0f} W", names, gpu.power->value, gpu.power_limit->value));
  }
  return known ? outcome : unknown("the driver does not tell");
}

Outcome check_links(const Machine& machine) {
  if (auto outcome = no_question(machine)) return *outcome;
  Outcome outcome = fine();
  bool known = false;
  for (const Gpu& gpu : machine.snapshot()->gpus) {
    if (gpu.links.empty() || gpu.mig_mode.value_or(false)) continue;
    std::int64_t up = 0, down = 0;
    for (const device::Link& link : gpu.links)
      if (link.active) ++(*link.active ? up : down);
    known = known || up + down > 0;
    // A pair of cards without a bridge has all of them down, which is no fault.
    if (up > 0 && down > 0)
      of_gpu(outcome, "hw.nvlink", gpu)
          .fact("links_down", down)
          .seen("NVML", fmt::format("{} of {} links are down", down, up + down));
  }
  return known ? outcome : not_applicable("no links that tell");
}

// Xids that ask for something to be done to the machine (NVIDIA's catalogue of Xid errors, immediate actions). What a
// program did wrong (13, 31, 43, 45, 94 ...) is no fault of the machine.
struct XidAction {
  const char* problem;
  std::set<int> codes;
};
const XidAction kXidActions[] = {
    {"hw.xid_bus", {79}},
    {"hw.xid_reset", {48, 62, 64, 95, 109, 119, 120, 136, 140, 143, 155, 156, 158}},
    {"hw.xid_nvlink", {74, 144, 145, 146, 147, 148, 149, 150}},
    {"hw.xid_action", {154}},
};

Outcome check_xids(const Machine& machine) {
  if (!machine.has_nvidia()) return not_applicable("no NVIDIA GPU");
  if (!machine.host().kernel_log()) return unknown("the kernel's log may not be read");
  Outcome outcome = fine("none that asks for something");
  for (const XidLine& xid : xids_in_log(machine.host()))
    for (const XidAction& action : kXidActions) {
      if (!action.codes.contains(xid.code)) continue;
      outcome.wrong(action.problem)
          .item("addresses", xid.address)
          .item("xids", fmt::format("{}", xid.code))
          .evidence.push_back(xid.evidence);
    }
  return outcome;
}

}  // namespace

std::vector<Check> hardware_checks() {
  return {{"hw.xid", Layer::hardware, check_xids},
          {"hw.recovery", Layer::hardware, check_recovery},
          {"hw.memory", Layer::hardware, check_memory},
          {"hw.nvlink", Layer::hardware, check_links, Check::Use::both},
          {"hw.throttle", Layer::hardware, check_throttle, Check::Use::both}};
}

}  // namespace gpuwright::doctor
