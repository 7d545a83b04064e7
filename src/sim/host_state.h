// What a Host holds inside; the files of nvml/ read it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "sim/host.h"
#include "sim/scenario.h"

namespace gpuwright::sim {

// In memory that parent and forked children share, so that set_time() and the count of calls hold for all of them.
struct SharedState {
  std::atomic<double> stopped_at{-1};  // negative: the clock runs
  std::atomic<std::int64_t> calls{0};
  std::array<std::atomic<std::int64_t>, kMaxGpus> calls_for_gpu{};
};

struct Host::State {
  explicit State(Scenario what);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  double now() const;
  std::int64_t unix_ns(double seconds) const;  // of a moment of this host
  std::int64_t unix_us(double seconds) const { return unix_ns(seconds) / 1000; }

  Scenario scenario;
  SharedState* shared = nullptr;
  std::atomic<std::int64_t>* also_counted = nullptr;  // calls, in memory of somebody else
  std::int64_t start_monotonic_ns = 0, start_unix_ns = 0;
};

}  // namespace gpuwright::sim
