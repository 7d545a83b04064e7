#include "device/nvml/events.h"

#include <algorithm>

namespace gpuwright::device::nvidia {
namespace {

constexpr int kMostAtOnce = 256;
constexpr std::size_t kMostCodes = 64;

}  // namespace

void XidHistory::add(int code, UnixTime time) {
  last = static_cast<std::int64_t>(code);
  const auto known =
      std::find_if(events.begin(), events.end(), [code](const XidEvent& event) { return event.code == code; });
  if (known != events.end()) {
    known->time = time;
    ++known->count;
  } else if (events.size() < kMostCodes) {
    events.push_back({code, time, 1});
  }
}

void EventQueue::start(Asker& ask) {
  if (ask(ask.functions().nvmlEventSetCreate, &set_) != nvml::kSuccess) set_ = nullptr;
}

nvml::Return EventQueue::watch(Asker& ask, int index, nvml::Device device) {
  if (set_ == nullptr) return nvml::kNotSupported;
  const Functions& f = ask.functions();
  unsigned long long types = nvml::event::kXid;
  // Asking for a type that the driver lacks would lose the others.
  unsigned long long supported = 0;
  if (ask(f.nvmlDeviceGetSupportedEventTypes, device, &supported) == nvml::kSuccess)
    types = supported & (nvml::event::kXid | nvml::event::kMigConfiguration);
  if ((types & nvml::event::kXid) == 0) return nvml::kNotSupported;
  const nvml::Return code = ask(f.nvmlDeviceRegisterEvents, device, types, set_);
  if (code == nvml::kSuccess) devices_[device] = index;
  return code;
}

std::vector<std::pair<int, int>> EventQueue::poll(Asker& ask, bool& mig_changed) {
  std::vector<std::pair<int, int>> xids;
  if (set_ == nullptr || devices_.empty()) return xids;
  const Functions& f = ask.functions();
  for (int i = 0; i < kMostAtOnce; ++i) {
    nvml::EventData event{};
    nvml::Return code = ask(f.nvmlEventSetWait_v2, set_, &event, 0U);
    if (code == nvml::kFunctionNotFound) code = ask(f.nvmlEventSetWait, set_, &event, 0U);
    if (code != nvml::kSuccess) break;  // TIMEOUT: nothing happened
    if ((event.event_type & nvml::event::kMigConfiguration) != 0) mig_changed = true;
    const auto device = devices_.find(event.device);
    if ((event.event_type & nvml::event::kXid) == 0 || device == devices_.end() || event.event_data > 100'000) continue;
    xids.emplace_back(device->second, static_cast<int>(event.event_data));
  }
  return xids;
}

void EventQueue::stop(Asker& ask) {
  if (set_ != nullptr) ask(ask.functions().nvmlEventSetFree, set_);
  set_ = nullptr;
  devices_.clear();
}

}  // namespace gpuwright::device::nvidia
