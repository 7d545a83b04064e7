// A Feed that is read in a thread of its own: who shows its snapshots never waits for a driver.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "cli/live/live.h"

namespace gpuwright::cli {

// request(), take() and busy() belong to one thread. `on_ready` is called from the reading thread. The end does not
// wait for a driver that hangs: its thread is left to itself.
class Background {
 public:
  Background(std::unique_ptr<Feed> feed, std::function<void()> on_ready);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Asks for the next snapshot; without effect while one is being read.
  void request();
  bool busy() const;
  // What has come since the last call; nothing when nothing has.
  std::optional<Result<std::optional<device::Snapshot>>> take();
  // Feed::seconds_to_next() and note() as they were after the snapshot that take() gave last.
  std::optional<double> seconds_to_next() const { return seconds_to_next_; }
  const std::string& note() const { return note_; }

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::optional<double> seconds_to_next_;
  std::string note_;
};

}  // namespace gpuwright::cli
