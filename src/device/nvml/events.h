// Xids, by the driver's event queue: it is asked without waiting, and tells what happened since it was set up.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device/nvml/asker.h"
#include "device/snapshot.h"

namespace gpuwright::device::nvidia {

// What was seen of one GPU, for as long as the source lives.
struct XidHistory {
  std::vector<XidEvent> events;  // by code, in the order in which the codes came first
  Reading<std::int64_t> last = Why::no_data;
  void add(int code, UnixTime time);
};

class EventQueue {
 public:
  // Registers a device; a refusal is its history's reason. Call start() once before.
  void start(Asker& ask);
  nvml::Return watch(Asker& ask, int index, nvml::Device device);
  // Xids since the last poll: which device, which code. Tells by `mig_changed` whether instances were made or removed.
  std::vector<std::pair<int, int>> poll(Asker& ask, bool& mig_changed);
  void stop(Asker& ask);

 private:
  nvml::EventSet set_ = nullptr;
  std::map<nvml::Device, int> devices_;
};

}  // namespace gpuwright::device::nvidia
