// The door to the GPUs of this host: one Reader gives Snapshots, one after the other. The sources run in a child
// process (the collector) that is killed when a driver hangs, so that a read always comes back in time.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "device/snapshot.h"
#include "device/source.h"

namespace gpuwright::device {

struct ReaderOptions {
  SourceOptions sources;
  // How long one vendor call may take before its device counts as unresponsive.
  std::chrono::milliseconds call_deadline{1500};
  // How long a device that hung is left alone before it is tried again.
  std::chrono::milliseconds retry_after{30000};
  // Read in this process, without a collector: for tests. A hang is then a hang.
  bool in_process = false;
};

// Not thread-safe. Destroying it ends the collector (one that is stuck in the kernel is left behind).
class Reader {
 public:
  explicit Reader(ReaderOptions options);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  // The state now. Does not fail: what cannot be read stands in the snapshot (Gpu::state, Snapshot::sources). Takes at
  // most call_deadline plus what the other devices need. Rates are against the snapshot before.
  Snapshot read();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gpuwright::device
