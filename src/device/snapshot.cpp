#include "device/snapshot.h"

#include <array>

namespace gpuwright::device {

std::string_view to_string(Why why) {
  static constexpr std::array<std::string_view, kReasons> kTexts = {
      "not read",     "not supported",     "no permission",     "needs CAP_PERFMON", "asleep",
      "in MIG mode",  "needs two samples", "no data",           "GPU is lost",       "needs a reset",
      "unresponsive", "unified memory",    "implausible value", "no driver",         "not visible from here",
      "driver error",
  };
  return kTexts[static_cast<std::size_t>(why)];
}

std::string_view to_string(Vendor vendor) {
  switch (vendor) {
    case Vendor::nvidia:
      return "NVIDIA";
    case Vendor::amd:
      return "AMD";
    case Vendor::intel:
      return "Intel";
    case Vendor::huawei:
      return "Huawei";
    case Vendor::unknown:
      break;
  }
  return "unknown";
}

std::string_view to_string(State state) {
  switch (state) {
    case State::ok:
      return "ok";
    case State::asleep:
      return "asleep";
    case State::lost:
      return "lost";
    case State::needs_reset:
      return "needs reset";
    case State::unresponsive:
      return "unresponsive";
    case State::no_permission:
      return "no permission";
    case State::no_driver:
      return "no driver";
    case State::failed:
      break;
  }
  return "failed";
}

std::vector<std::string_view> names_of(ThrottleReasons reasons) {
  struct Named {
    std::uint64_t bit;
    std::string_view name;
  };
  static constexpr std::array<Named, 9> kNames = {{
      {throttle::kIdle, "idle"},
      {throttle::kApplicationClocks, "application clocks"},
      {throttle::kSoftwarePowerCap, "software power cap"},
      {throttle::kHardwareSlowdown, "hardware slowdown"},
      {throttle::kSyncBoost, "sync boost"},
      {throttle::kSoftwareThermal, "software thermal slowdown"},
      {throttle::kHardwareThermal, "hardware thermal slowdown"},
      {throttle::kHardwarePowerBrake, "hardware power brake"},
      {throttle::kDisplayClocks, "display clocks"},
  }};
  std::vector<std::string_view> names;
  for (const Named& named : kNames)
    if (reasons.bits & named.bit) names.push_back(named.name);
  return names;
}

Reading<Bytes> unattributed_memory(const Snapshot& snapshot, const Gpu& gpu) {
  if (!gpu.memory_used) return gpu.memory_used.why();
  Bytes rest = *gpu.memory_used;
  for (const Process& process : snapshot.processes) {
    if (process.gpu != gpu.index) continue;
    if (!process.memory) return process.memory.why();
    rest -= *process.memory;
  }
  // Processes may share pages, and their memory is read a moment after the device's.
  if (rest.count < 0) return Bytes{};
  return rest;
}

}  // namespace gpuwright::device
