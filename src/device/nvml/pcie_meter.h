// PCIe traffic where the driver has no byte counters: nvmlDeviceGetPcieThroughput measures for 20 ms a direction and
// blocks meanwhile, so a thread beside the reader calls it.
#pragma once

#include <cstdint>
#include <memory>

#include "device/nvml/library.h"
#include "device/snapshot.h"

namespace gpuwright::device::nvidia {

class PcieMeter {
 public:
  explicit PcieMeter(std::shared_ptr<const Library> library);
  PcieMeter(const PcieMeter&) = delete;
  PcieMeter& operator=(const PcieMeter&) = delete;
  ~PcieMeter();

  struct Traffic {
    Reading<BytesPerSecond> sent, received;
  };
  // What was measured last, and asks for the next measurement. Never waits.
  Traffic read(int index, nvml::Device device);
  // The handles are about to end. Waits for a measurement under way, for a moment only; false when it hangs, so that
  // the library must not be shut down.
  bool forget_devices();
  // Calls that it made since it was asked last.
  std::int64_t take_calls();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which may outlive this when a call hangs
};

}  // namespace gpuwright::device::nvidia
