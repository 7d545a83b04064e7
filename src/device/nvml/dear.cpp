#include "device/nvml/dear.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace gpuwright::device::nvidia {

struct DearQuestions::State : public CallWatch {
  State(std::shared_ptr<const Library> opened, nvml::Device asked, bool of_fan, std::vector<std::uint8_t> of_kinds)
      : library(std::move(opened)), device(asked), fan(of_fan), kinds(std::move(of_kinds)) {}

  const std::shared_ptr<const Library> library;
  const nvml::Device device;
  const bool fan;
  const std::vector<std::uint8_t> kinds;

  std::mutex mutex;
  std::condition_variable changed;
  const char* call = nullptr;  // under way
  bool done = false;
  DearAnswers answers;

  void enter(std::string_view, int, const char* name) override { tell(name); }
  void leave() override {}
  bool forbidden(std::string_view, int) const override { return false; }

  void tell(const char* name) {
    const std::scoped_lock lock(mutex);
    call = name;
    changed.notify_all();
  }

  void run() {
    DearAnswers found;
    Asker ask(*library, *this);
    const Functions& f = library->functions();
    for (const std::uint8_t kind : kinds)
      if (ask.fine()) found.lists[kind] = ask_process_list(ask, device, kind);
    if (fan && ask.fine()) {
      found.fan_asked = true;
      found.fan_code = ask(f.nvmlDeviceGetFanSpeed, device, &found.fan_percent);
      nvml::FanSpeedInfo info{nvml::version_of<nvml::FanSpeedInfo>(1), 0, 0};
      found.rpm_code = ask(f.nvmlDeviceGetFanSpeedRPM, device, &info);
      found.fan_rpm = info.rpm;
    }
    found.trouble = ask.trouble();
    found.calls = ask.calls();
    const std::scoped_lock lock(mutex);
    answers = std::move(found);
    done = true;
    changed.notify_all();
  }
};

DearQuestions::DearQuestions(std::shared_ptr<const Library> library, nvml::Device device, bool fan,
                             std::vector<std::uint8_t> kinds)
    : state_(std::make_shared<State>(std::move(library), device, fan, std::move(kinds))) {
  std::thread([state = state_] { state->run(); }).detach();
}

std::optional<DearAnswers> DearQuestions::take(CallWatch& watch, int index, Asker::Clock::time_point until) {
  std::unique_lock lock(state_->mutex);
  while (!state_->done) {
    const char* call = state_->call;
    if (call != nullptr) watch.enter("nvml", index, call);
    const bool changed =
        state_->changed.wait_until(lock, until, [this, call] { return state_->done || state_->call != call; });
    if (call != nullptr) watch.leave();
    if (!changed) return std::nullopt;
  }
  return std::move(state_->answers);
}

}  // namespace gpuwright::device::nvidia
