// Events: what a scenario's faults make the driver say, to who waits for it. An event set hears only what happens after
// a device was registered with it; there is no history.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/nvml/call.h"

namespace gpuwright::sim {
namespace {

using nvml::Return;

constexpr unsigned long long kSupported = nvml::event::kSingleBitEcc | nvml::event::kDoubleBitEcc | nvml::event::kXid |
                                          nvml::event::kMigConfiguration | nvml::event::kGpuUnavailable |
                                          nvml::event::kRecoveryAction;
constexpr double kPollSeconds = 0.02;
constexpr std::size_t kMostSets = 4096;

struct Registration {
  int gpu = 0;
  unsigned long long types = 0;
  double heard_until = 0;
};

struct Set {
  std::vector<Registration> registrations;
};

struct Sets {
  std::mutex mutex;
  std::map<std::uintptr_t, Set> all;
  std::uintptr_t next = 0x475700;  // an id, in the place of an address
};

Sets& sets() {
  static auto* const kSets = new Sets;
  return *kSets;
}

std::uintptr_t id_of(nvml::EventSet set) {
  return reinterpret_cast<std::uintptr_t>(set);
}

struct Event {
  double time = 0;
  int gpu = 0;
  unsigned long long type = 0, data = 0;
};

// Events of one fault for GPUs: at most two.
void events_of(const Fault& fault, int gpu, std::vector<Event>& into) {
  const double time = fault.interval.start;
  switch (fault.kind) {
    case FaultKind::xid:
      into.push_back({time, gpu, nvml::event::kXid, static_cast<unsigned>(fault.code)});
      break;
    case FaultKind::ecc:
      if (fault.corrected > 0) into.push_back({time, gpu, nvml::event::kSingleBitEcc, 0});
      if (fault.uncorrected > 0) into.push_back({time, gpu, nvml::event::kDoubleBitEcc, 0});
      break;
    case FaultKind::lost:
      into.push_back({time, gpu, nvml::event::kGpuUnavailable, 0});
      break;
    case FaultKind::needs_reset:
      into.push_back({time, gpu, nvml::event::kRecoveryAction, 0});
      break;
    default:
      break;
  }
}

std::vector<Event> events_for(const Host::State& host, int gpu) {
  std::vector<Event> events;
  for (const Fault& fault : host.scenario.faults)
    if (fault.concerns(gpu)) events_of(fault, gpu, events);
  for (const MigSpec& instance : host.scenario.gpus[static_cast<std::size_t>(gpu)].instances)
    for (const double time : {instance.interval.start, instance.interval.end})
      if (time > 0 && time < kForever) events.push_back({time, gpu, nvml::event::kMigConfiguration, 0});
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
  return events;
}

// The first event that the set has not heard of. Of several of one GPU and one moment only the first is told.
std::optional<Event> take_event(const Host::State& host, Set& set, double now) {
  std::optional<Event> first;
  Registration* hears = nullptr;
  for (Registration& registration : set.registrations) {
    for (const Event& event : events_for(host, registration.gpu)) {
      if (event.time > now || event.time < registration.heard_until || (event.type & registration.types) == 0) continue;
      if (!first || event.time < first->time) {
        first = event;
        hears = &registration;
      }
      break;
    }
  }
  if (first) hears->heard_until = std::nextafter(first->time, kForever);
  return first;
}

// Nothing: the set is not known.
std::optional<std::optional<Event>> poll(const Host::State& host, nvml::EventSet set, double now) {
  Sets& registry = sets();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.all.find(id_of(set));
  if (found == registry.all.end()) return std::nullopt;
  return take_event(host, found->second, now);
}

double monotonic_seconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

void sleep_seconds(double seconds) {
  const timespec time{0, static_cast<long>(seconds * 1e9)};
  nanosleep(&time, nullptr);
}

Return wait(const char* function, nvml::EventSet set, nvml::EventData* data, unsigned timeout_ms) {
  const double begin = monotonic_seconds();
  if (data == nullptr) return nvml::kInvalidArgument;
  calls::Entry entry = calls::enter(function);
  if (entry.code != nvml::kSuccess) return entry.code;
  while (true) {
    const auto polled = poll(entry.state(), set, entry.state().now());
    if (!polled) return nvml::kInvalidArgument;
    if (*polled) {
      *data = {calls::handle_of((*polled)->gpu, -1), (*polled)->type, (*polled)->data, nvml::kNoInstance,
               nvml::kNoInstance};
      return nvml::kSuccess;
    }
    const double left = begin + timeout_ms / 1000.0 - monotonic_seconds();
    if (left <= 0) return nvml::kTimeout;
    sleep_seconds(std::min(left, kPollSeconds));
  }
}

}  // namespace

Return nvmlEventSetCreate(nvml::EventSet* set) {
  const calls::Entry entry = calls::enter(__func__);
  if (entry.code != nvml::kSuccess) return entry.code;
  if (set == nullptr) return nvml::kInvalidArgument;
  Sets& registry = sets();
  const std::lock_guard lock(registry.mutex);
  if (registry.all.size() >= kMostSets) return nvml::kInsufficientResources;
  registry.next += 16;
  registry.all[registry.next] = {};
  *set = reinterpret_cast<nvml::EventSet>(registry.next);  // NOLINT(performance-no-int-to-ptr): an id
  return nvml::kSuccess;
}

Return nvmlEventSetFree(nvml::EventSet set) {
  const calls::Entry entry = calls::enter(__func__);
  if (entry.code != nvml::kSuccess) return entry.code;
  Sets& registry = sets();
  const std::lock_guard lock(registry.mutex);
  return registry.all.erase(id_of(set)) == 1 ? nvml::kSuccess : nvml::kInvalidArgument;
}

Return nvmlDeviceGetSupportedEventTypes(nvml::Device device, unsigned long long* types) {
  return calls::tell(__func__, device, types, [](const GpuView&) { return std::optional(kSupported); });
}

Return nvmlDeviceRegisterEvents(nvml::Device device, unsigned long long types, nvml::EventSet set) {
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    if ((types & ~kSupported) != 0) return nvml::kNotSupported;
    Sets& registry = sets();
    const std::lock_guard lock(registry.mutex);
    const auto found = registry.all.find(id_of(set));
    if (found == registry.all.end()) return nvml::kInvalidArgument;
    for (Registration& registration : found->second.registrations)
      if (registration.gpu == gpu.index()) {
        registration.types |= types;
        return nvml::kSuccess;
      }
    found->second.registrations.push_back({gpu.index(), types, gpu.time()});
    return nvml::kSuccess;
  });
}

Return nvmlEventSetWait(nvml::EventSet set, nvml::EventData* data, unsigned timeout_ms) {
  return wait(__func__, set, data, timeout_ms);
}
Return nvmlEventSetWait_v2(nvml::EventSet set, nvml::EventData* data, unsigned timeout_ms) {
  return wait(__func__, set, data, timeout_ms);
}

}  // namespace gpuwright::sim
