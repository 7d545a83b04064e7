// The door to the GPUs of this host: one Reader gives Snapshots, one after the other. The sources run in a child
// process (the collector) that is killed when a driver hangs, so that a read always comes back in time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/snapshot.h"
#include "device/source.h"

namespace gpuwright::device {

struct SourceEntry;  // collector.h

struct ReaderOptions {
  SourceOptions sources;
  // How long one vendor call may take before its device counts as unresponsive.
  std::chrono::milliseconds call_deadline{1500};
  // How long a device that hung is left alone before it is tried again; twice as long each time that it hangs anew at
  // once, up to a minute.
  std::chrono::milliseconds retry_after{5000};
  // Read in this process, without a collector: for tests. A hang is then a hang.
  bool in_process = false;
  // For tests: sources to read in place of all that there are (all_sources of collector.h).
  std::function<std::vector<SourceEntry>(const SourceOptions&)> make_sources;
};

// Not thread-safe. Destroying it ends the collector (one that is stuck in the kernel is left behind).
class Reader {
 public:
  explicit Reader(ReaderOptions options);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  // The state now. Does not fail: what cannot be read stands in the snapshot (Gpu::state, Snapshot::sources). Rates are
  // against the snapshot before. When a device hangs, takes call_deadline plus what the other devices need; when
  // several hang at once, two thirds more than call_deadline, and the devices that were not reached by then are
  // unresponsive, too.
  Snapshot read();

  // The process that asks the drivers, for those who measure: its pid, 0 when there is none.
  int collector_pid() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gpuwright::device
