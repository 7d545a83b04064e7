// Bytes a second from two values of a counter.
#pragma once

#include <cstdint>
#include <optional>

#include "device/snapshot.h"

namespace gpuwright::device::nvidia {

class ByteRate {
 public:
  // `counter` in units of `unit` bytes, wrapping after `bits`; a missing one gives its reason. A counter that steps
  // back (driver reload) starts anew.
  Reading<BytesPerSecond> take(Reading<std::uint64_t> counter, double unit, int bits, std::int64_t now_ns);

 private:
  std::optional<std::uint64_t> before_;
  std::int64_t before_ns_ = 0;
  Reading<BytesPerSecond> last_ = Why::needs_two_samples;
};

}  // namespace gpuwright::device::nvidia
