// The questions that take a driver long: a fan's speed (0.1 ms) and the lists of processes that draw or go through MPS
// (4.5 ms on a busy GPU; both flightlessmango/MangoHud#2104). Of all devices they are asked at the same time, each from
// a thread of its own, so that sixteen GPUs take as long as one where the driver lets them; NVML is thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "device/nvml/process_lists.h"

namespace gpuwright::device::nvidia {

struct DearAnswers {
  bool fan_asked = false;
  nvml::Return fan_code = nvml::kSuccess, rpm_code = nvml::kSuccess;
  unsigned fan_percent = 0, fan_rpm = 0;
  std::map<std::uint8_t, ProcessList> lists;  // of those that were asked, by process_kind
  nvml::Return trouble = nvml::kSuccess;      // Asker::trouble
  std::int64_t calls = 0;
};

// Of one device.
class DearQuestions {
 public:
  // Starts to ask.
  DearQuestions(std::shared_ptr<const Library> library, nvml::Device device, bool fan, std::vector<std::uint8_t> kinds);
  // Waits for the answers until the time is over; then there are none yet. The watch hears of each call that is waited
  // for: one that hangs is this device's.
  std::optional<DearAnswers> take(CallWatch& watch, int index, Asker::Clock::time_point until);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gpuwright::device::nvidia
