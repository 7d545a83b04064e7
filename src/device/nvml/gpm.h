// Activity of the SMs by NVML's GPM (Hopper and later): counters in opaque samples, of which the library compares two.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "device/nvml/asker.h"
#include "device/snapshot.h"

namespace gpuwright::device::nvidia {

struct Activity {
  Reading<Ratio> graphics, sm, occupancy, tensor;
};

// Of one GPU or GPU instance. The samples belong to the library: release() before it is shut down.
class GpmMeter {
 public:
  // `gpu_instance`: of a MIG instance, else nullopt.
  Activity read(Asker& ask, nvml::Device device, std::optional<unsigned> gpu_instance, std::int64_t now_ns);
  void release(Asker& ask);

 private:
  nvml::Return prepare(Asker& ask, nvml::Device device);
  Activity compare(Asker& ask);

  nvml::GpmSample earlier_ = nullptr, later_ = nullptr;
  bool has_earlier_ = false;
  std::optional<nvml::Return> supported_;
  std::int64_t sampled_ns_ = 0;
  Activity last_;
};

}  // namespace gpuwright::device::nvidia
