#include "cli/live/background.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace gpuwright::cli {

struct Background::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool wanted = false, reading = false, ending = false, ended = false;
  std::optional<Result<std::optional<device::Snapshot>>> result;
  std::optional<double> seconds_to_next;
  std::string note;
  std::function<void()> on_ready;

  void run(std::unique_ptr<Feed> feed) {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return wanted || ending; });
      if (ending) break;
      wanted = false;
      lock.unlock();
      auto next = feed->next();
      lock.lock();
      result = std::move(next);
      seconds_to_next = feed->seconds_to_next();
      note = feed->note();
      reading = false;
      if (!ending) on_ready();
    }
    lock.unlock();
    feed.reset();
    lock.lock();
    ended = true;
    changed.notify_all();
  }
};

Background::Background(std::unique_ptr<Feed> feed, std::function<void()> on_ready)
    : shared_(std::make_shared<Shared>()) {
  shared_->on_ready = std::move(on_ready);
  std::thread([shared = shared_, feed = std::move(feed)]() mutable { shared->run(std::move(feed)); }).detach();
}

Background::~Background() {
  std::unique_lock lock(shared_->mutex);
  shared_->ending = true;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, std::chrono::milliseconds(200), [this] { return shared_->ended; });
}

void Background::request() {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->reading || shared_->result) return;
  shared_->wanted = shared_->reading = true;
  shared_->changed.notify_all();
}

bool Background::busy() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->reading;
}

std::optional<Result<std::optional<device::Snapshot>>> Background::take() {
  const std::lock_guard lock(shared_->mutex);
  auto result = std::move(shared_->result);
  shared_->result.reset();
  seconds_to_next_ = shared_->seconds_to_next;
  note_ = shared_->note;
  return result;
}

}  // namespace gpuwright::cli
