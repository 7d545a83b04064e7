#include "sim/nvml/call.h"

#include <time.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace gpuwright::sim {
namespace {

// A handle is no address but a mark and four small numbers, so that a stale or invented one is seen for what it is.
constexpr std::uint64_t kMark = 0x4757;  // "GW"

struct Library {
  std::mutex mutex;
  std::shared_ptr<Host> host;
  std::shared_ptr<Host> (*make)() = nullptr;  // gives the host when there is to be one
  std::uint64_t generation = 0;               // how many hosts were installed
  int opened = 0;                             // nvmlInit without nvmlShutdown
  int opened_reloads = 0;                     // reloads() when it was opened
};

Library& library() {
  static auto* const kLibrary = new Library;  // outlives every static destructor that might still call
  return *kLibrary;
}

// How often the driver has come back until now: handles and an open library do not survive that.
int reloads(const Host::State& host, double time) {
  int count = 0;
  for (const Fault& fault : host.scenario.faults)
    if (fault.kind == FaultKind::not_loaded && fault.interval.end <= time) ++count;
  return count;
}

bool holds(const Host::State& host, double time, FaultKind kind) {
  return std::any_of(host.scenario.faults.begin(), host.scenario.faults.end(), [&](const Fault& fault) {
    return fault.kind == kind && fault.gpus.empty() && fault.interval.holds(time);
  });
}

void sleep_us(std::int64_t microseconds) {
  timespec time{microseconds / 1'000'000, microseconds % 1'000'000 * 1000};
  while (nanosleep(&time, &time) != 0) continue;
}

// What the versions of a function have in common; nvmlInitWithFlags is one more version of nvmlInit.
std::string_view without_version(std::string_view function) {
  if (function == "nvmlInitWithFlags") return "nvmlInit";
  const std::size_t at = function.rfind("_v");
  return at == std::string_view::npos || at + 3 != function.size() ? function : function.substr(0, at);
}

bool delays(const Fault& fault, std::string_view function, int gpu) {
  if (!fault.gpus.empty() && (gpu < 0 || !fault.concerns(gpu))) return false;
  return fault.function.empty() || fault.function == function || fault.function == without_version(function);
}

// As long as calls of that function take. A hang lasts as long as the fault does.
void wait_out(const Host::State& host, std::string_view function, int gpu) {
  std::int64_t cost = function == "nvmlDeviceGetPcieThroughput" ? host.scenario.pcie_throughput_microseconds : 0;
  const double now = host.now();
  for (const Fault& fault : host.scenario.faults) {
    if (fault.kind == FaultKind::slow && fault.interval.holds(now) && delays(fault, function, gpu))
      cost = fault.microseconds;
    if (fault.kind == FaultKind::hang && delays(fault, function, gpu))
      while (fault.interval.holds(host.now())) sleep_us(20'000);
  }
  if (cost > 0) sleep_us(cost);
}

}  // namespace

void install_nvml(std::shared_ptr<Host> host) {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  all.host = std::move(host);
  all.make = nullptr;
  all.generation = (all.generation + 1) & 0xff;
  all.opened = 0;
}

void install_nvml_when_asked(std::shared_ptr<Host> (*make)()) {
  install_nvml(nullptr);
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  all.make = make;
}

namespace calls {

std::shared_ptr<Host> installed() {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  if (all.make != nullptr) all.host = std::exchange(all.make, nullptr)();
  return all.host;
}

Entry enter_closed(const char* function) {
  Entry entry;
  entry.host = installed();
  if (entry.host == nullptr) {
    entry.code = nvml::kDriverNotLoaded;
    return entry;
  }
  entry.state().shared->calls.fetch_add(1, std::memory_order_relaxed);
  if (entry.state().also_counted != nullptr) entry.state().also_counted->fetch_add(1, std::memory_order_relaxed);
  if (!has_symbol(entry.state().scenario.driver, function)) entry.code = nvml::kFunctionNotFound;
  return entry;
}

Entry enter(const char* function, int gpu) {
  Entry entry = enter_closed(function);
  if (entry.code != nvml::kSuccess) return entry;
  if (gpu >= 0 && gpu < kMaxGpus)
    entry.state().shared->calls_for_gpu[static_cast<std::size_t>(gpu)].fetch_add(1, std::memory_order_relaxed);
  wait_out(entry.state(), function, gpu);
  entry.time = entry.state().now();
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  if (all.opened == 0 || all.opened_reloads != reloads(entry.state(), entry.time))
    entry.code = nvml::kUninitialized;
  else if (holds(entry.state(), entry.time, FaultKind::not_loaded))
    entry.code = nvml::kUnknown;
  return entry;
}

nvml::Return open_library(const char* function) {
  const Entry entry = enter_closed(function);
  if (entry.code != nvml::kSuccess) return entry.code;
  wait_out(entry.state(), function, -1);
  const double time = entry.state().now();
  if (holds(entry.state(), time, FaultKind::not_loaded)) return nvml::kDriverNotLoaded;
  if (holds(entry.state(), time, FaultKind::mismatch)) return nvml::kLibRmVersionMismatch;
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  const int now = reloads(entry.state(), time);
  all.opened = all.opened > 0 && all.opened_reloads == now ? all.opened + 1 : 1;
  all.opened_reloads = now;
  return nvml::kSuccess;
}

nvml::Return close_library() {
  const Entry entry = enter_closed("nvmlShutdown");
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  if (all.opened == 0) return nvml::kUninitialized;
  --all.opened;
  return nvml::kSuccess;
}

nvml::Device handle_of(int gpu, int instance) {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  const std::uint64_t bits = kMark << 40 | all.generation << 32 |
                             static_cast<std::uint64_t>(all.opened_reloads & 0xff) << 24 |
                             static_cast<std::uint64_t>(gpu + 1) << 8 | static_cast<std::uint64_t>(instance + 1);
  return reinterpret_cast<nvml::Device>(bits);  // NOLINT(performance-no-int-to-ptr): see kMark
}

Decoded decode(nvml::Device device) {
  const auto bits = reinterpret_cast<std::uint64_t>(device);
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  if (bits >> 40 != kMark || (bits >> 32 & 0xff) != all.generation ||
      (bits >> 24 & 0xff) != static_cast<std::uint64_t>(all.opened_reloads & 0xff))
    return {};
  return {static_cast<int>(bits >> 8 & 0xffff) - 1, static_cast<int>(bits & 0xff) - 1};
}

nvml::Return code_of(Condition condition) {
  switch (condition) {
    case Condition::lost:
      return nvml::kGpuIsLost;
    case Condition::needs_reset:
      return nvml::kResetRequired;
    case Condition::no_permission:
      return nvml::kNoPermission;
    case Condition::failed:
      return nvml::kUnknown;
    case Condition::ok:
      break;
  }
  return nvml::kSuccess;
}

nvml::Return copy_text(std::string_view text, char* into, unsigned size) {
  if (into == nullptr) return nvml::kInvalidArgument;
  if (text.size() >= size) return nvml::kInsufficientSize;
  std::memcpy(into, text.data(), text.size());
  into[text.size()] = '\0';
  return nvml::kSuccess;
}

}  // namespace calls

std::int64_t nvml_calls() {
  const auto host = calls::installed();
  return host == nullptr ? 0 : host->state().shared->calls.load();
}

}  // namespace gpuwright::sim
