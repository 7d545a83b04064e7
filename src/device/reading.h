// A value that a device may or may not tell. What it does not tell has a reason, never a 0: the reason is what people
// are shown in its place and what JSON answers carry under "unknown".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace gpuwright::device {

// Why a value is missing. Recorded in files: new reasons go to the end.
enum class Why : std::uint8_t {
  not_read,           // nobody asked for it in this snapshot
  not_supported,      // the device or its driver does not have it
  no_permission,      // the driver refuses this user
  needs_perfmon,      // Intel: needs CAP_PERFMON
  asleep,             // the device is runtime-suspended and is not woken for this
  in_mig_mode,        // not told for a device that is cut into MIG instances
  needs_two_samples,  // a rate: there is no earlier sample yet
  no_data,            // supported, but the driver has no sample now
  lost,               // the device fell off the bus
  needs_reset,        // the device must be reset before it answers again
  unresponsive,       // the driver did not answer in time
  unified_memory,     // the device has no memory of its own
  implausible,        // the driver said something that cannot be (a sentinel, 37100 %)
  no_driver,          // no kernel driver is bound to the device
  not_visible,        // hidden from here: another PID namespace, hidepid
  failed,             // the driver answered with an error that has no better name
};
inline constexpr int kReasons = 16;

std::string_view to_string(Why why);  // "not supported", "needs CAP_PERFMON"

template <class T>
class Reading {
 public:
  Reading() = default;
  Reading(T value) : value_(std::move(value)) {}
  Reading(Why why) : why_(why) {}

  bool known() const { return value_.has_value(); }
  explicit operator bool() const { return known(); }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return &*value_; }
  T value_or(T other) const { return value_.value_or(std::move(other)); }
  const std::optional<T>& optional() const { return value_; }
  // Meaningless when the value is known.
  Why why() const { return why_; }

  bool operator==(const Reading& other) const {
    return value_ == other.value_ && (value_.has_value() || why_ == other.why_);
  }

 private:
  std::optional<T> value_;
  Why why_ = Why::not_read;
};

}  // namespace gpuwright::device
