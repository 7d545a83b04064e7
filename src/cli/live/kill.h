// Ending a process that is on a GPU, and surely that one.
#pragma once

#include "cli/command.h"
#include "device/snapshot.h"

namespace gpuwright::cli {

// "TERM", "SIGTERM" or "15".
Result<int> signal_named(std::string_view name);

// Holds on to the process of that number before it checks that it is still the one that began at `started`, so that a
// number that is given away meanwhile cannot be hit. not_found when it has ended.
class HeldProcess {
 public:
  static Result<HeldProcess> open(std::int64_t pid, const device::Reading<device::UnixTime>& started);
  ~HeldProcess();
  HeldProcess(HeldProcess&& other) noexcept : descriptor_(other.descriptor_), pid_(other.pid_) {
    other.descriptor_ = -1;
  }
  Status send(int signal) const;

 private:
  HeldProcess(int descriptor, std::int64_t pid) : descriptor_(descriptor), pid_(pid) {}
  int descriptor_;
  std::int64_t pid_;
};

// Asks at a terminal (`yes` says yes beforehand), then sends. kAnswerIsNo when the answer was no.
Result<int> kill_gpu_process(const device::Snapshot& snapshot, std::int64_t pid, int signal, bool yes,
                             const Console& console);

}  // namespace gpuwright::cli
