#include "device/nvml/rate.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr std::int64_t kShortest = 5'000'000;  // ns; below, the counter's own steps would show
constexpr double kMostPerSecond = 2e13;

}  // namespace

Reading<BytesPerSecond> ByteRate::take(Reading<std::uint64_t> counter, double unit, int bits, std::int64_t now_ns) {
  if (!counter.known()) {
    before_.reset();
    last_ = Why::needs_two_samples;
    return counter.why();
  }
  const std::int64_t passed = now_ns - before_ns_;
  if (before_ && passed >= 0 && passed < kShortest) return last_;
  const std::optional<std::uint64_t> before = before_;
  before_ = *counter;
  before_ns_ = now_ns;
  last_ = Why::needs_two_samples;
  if (!before || passed < 0) return last_;
  std::uint64_t difference = *counter - *before;
  if (bits == 32) difference &= 0xFFFFFFFFULL;
  if (bits != 32 && *counter < *before) return last_;
  const double per_second = static_cast<double>(difference) * unit * 1e9 / static_cast<double>(passed);
  if (per_second > kMostPerSecond)
    last_ = Why::implausible;
  else
    last_ = BytesPerSecond{per_second};
  return last_;
}

}  // namespace gpuwright::device::nvidia
