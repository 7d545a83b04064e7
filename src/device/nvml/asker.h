// The one way to a function of the library: counts it, tells the CallWatch which device is being asked for what, and
// keeps in mind when an answer means more than itself (the GPU is gone, the driver was reloaded).
#pragma once

#include <chrono>
#include <cstdint>

#include "device/nvml/library.h"

namespace gpuwright::device::nvidia {

// The driver was unloaded or replaced: no handle is worth anything any more.
inline bool ends_the_session(nvml::Return code) {
  return code == nvml::kUninitialized || code == nvml::kDriverNotLoaded || code == nvml::kLibRmVersionMismatch;
}

class Asker {
 public:
  Asker(const Library& library, CallWatch& watch) : library_(library), watch_(watch) {}

  // Which device the next calls are about; -1 = the library. Forgets what the device before answered.
  void turn_to(int device) {
    device_ = device;
    trouble_ = nvml::kSuccess;
    until_ = Clock::time_point::max();
  }

  using Clock = std::chrono::steady_clock;
  // Calls to this device are answered with kTimeout from then on, without asking it.
  void ask_until(Clock::time_point until) { until_ = until; }
  bool late() const { return until_ != Clock::time_point::max() && Clock::now() >= until_; }
  Clock::time_point until() const { return until_; }

  // kFunctionNotFound where the driver lacks the function.
  template <class... Parameters, class... Arguments>
  nvml::Return operator()(const Function<nvml::Return(Parameters...)>& function, Arguments... arguments) {
    if (!function) return nvml::kFunctionNotFound;
    if (late()) return nvml::kTimeout;
    ++calls_;
    watch_.enter("nvml", device_, function.name);
    const nvml::Return code = function.pointer(arguments...);
    watch_.leave();
    if (ends_the_device(code)) trouble_ = code;
    return code;
  }

  // Counts in what was asked from elsewhere, and what that came to.
  void add(std::int64_t calls, nvml::Return trouble) {
    calls_ += calls;
    if (trouble != nvml::kSuccess) trouble_ = trouble;
  }

  // The last answer that makes further questions to this device pointless, else kSuccess.
  nvml::Return trouble() const { return trouble_; }
  bool fine() const { return trouble_ == nvml::kSuccess; }

  const Library& library() const { return library_; }
  const Functions& functions() const { return library_.functions(); }
  CallWatch& watch() { return watch_; }
  std::int64_t calls() const { return calls_; }

 private:
  static bool ends_the_device(nvml::Return code) {
    return ends_the_session(code) || code == nvml::kGpuIsLost || code == nvml::kResetRequired ||
           code == nvml::kGpuNotFound;
  }

  const Library& library_;
  CallWatch& watch_;
  int device_ = -1;
  nvml::Return trouble_ = nvml::kSuccess;
  Clock::time_point until_ = Clock::time_point::max();
  std::int64_t calls_ = 0;
};

// Whether an answer means "not in this form": the older function of a chain is then worth a try.
inline bool try_the_older(nvml::Return code) {
  return code == nvml::kFunctionNotFound || code == nvml::kArgumentVersionMismatch || code == nvml::kDeprecated ||
         code == nvml::kNotSupported;
}

}  // namespace gpuwright::device::nvidia
