// A driver with devices that hang, crash and vanish as a test says, also while a collector that was forked before asks
// them: what it is told lies in shared memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/worker.h"
#include "device/collector.h"

namespace gpuwright::device::testing {

class FakeDriver {
 public:
  explicit FakeDriver(std::string source, int devices = 3);

  // Bit d: device d does so when it is asked.
  struct Faults {
    std::atomic<std::uint32_t> hang, crash, lost, gone;
    std::atomic<bool> hang_in_start, hang_unwatched, throws, out_of_memory, ignores_the_ban;
    std::atomic<int> readings, asked_of_barred, slow_ms, xid;
  };
  Faults& faults() const { return *faults_; }
  SourceEntry entry() const;

 private:
  std::string source_;
  int devices_;
  Shared<Faults> faults_;
};

}  // namespace gpuwright::device::testing
