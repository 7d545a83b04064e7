#include "device/nvml/pcie_meter.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "device/nvml/answer.h"

namespace gpuwright::device::nvidia {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::milliseconds(200);
constexpr auto kHung = std::chrono::seconds(5);

}  // namespace

struct PcieMeter::State {
  explicit State(std::shared_ptr<const Library> opened) : library(std::move(opened)) {}

  struct Measured {
    nvml::Device device = nullptr;
    bool wanted = false;
    Traffic traffic{Why::needs_two_samples, Why::needs_two_samples};
    Clock::time_point asked;
  };

  const std::shared_ptr<const Library> library;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int, Measured> devices;
  bool running = false, stopping = false, measuring = false;
  std::int64_t calls = 0;

  Reading<BytesPerSecond> measure(nvml::Device device, nvml::PcieCounter counter) const {
    const auto& function = library->functions().nvmlDeviceGetPcieThroughput;
    if (!function) return Why::not_supported;
    unsigned kib = 0;
    const nvml::Return code = function.pointer(device, counter, &kib);
    if (code != nvml::kSuccess) return why_of(code);
    if (is_blank32(kib)) return Why::implausible;
    return BytesPerSecond{kib * 1024.0};
  }

  void run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      auto next = devices.begin();
      while (next != devices.end() && !next->second.wanted) ++next;
      if (next == devices.end()) {
        changed.wait(lock);
        continue;
      }
      const int index = next->first;
      const nvml::Device device = next->second.device;
      measuring = true;
      lock.unlock();
      const Traffic traffic{measure(device, nvml::kPcieSent), measure(device, nvml::kPcieReceived)};
      lock.lock();
      measuring = false;
      calls += 2;
      if (const auto found = devices.find(index); found != devices.end() && found->second.device == device) {
        found->second.traffic = traffic;
        found->second.wanted = false;
      }
      changed.notify_all();
    }
    running = false;
    changed.notify_all();
  }
};

PcieMeter::PcieMeter(std::shared_ptr<const Library> library) : state_(std::make_shared<State>(std::move(library))) {}

PcieMeter::~PcieMeter() {
  const std::scoped_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
}

PcieMeter::Traffic PcieMeter::read(int index, nvml::Device device) {
  const std::scoped_lock lock(state_->mutex);
  State::Measured& measured = state_->devices[index];
  if (measured.device != device) measured = {device, false, {Why::needs_two_samples, Why::needs_two_samples}, {}};
  if (measured.wanted && Clock::now() - measured.asked > kHung)
    measured.traffic = {Why::unresponsive, Why::unresponsive};
  if (!std::exchange(measured.wanted, true)) measured.asked = Clock::now();
  if (!state_->running) {
    state_->running = true;
    std::thread([state = state_] { state->run(); }).detach();
  }
  state_->changed.notify_all();
  return measured.traffic;
}

bool PcieMeter::forget_devices() {
  std::unique_lock lock(state_->mutex);
  state_->devices.clear();
  return state_->changed.wait_for(lock, kPatience, [this] { return !state_->measuring; });
}

std::int64_t PcieMeter::take_calls() {
  const std::scoped_lock lock(state_->mutex);
  return std::exchange(state_->calls, 0);
}

}  // namespace gpuwright::device::nvidia
