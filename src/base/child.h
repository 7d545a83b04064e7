// A program that the user named, started without a shell and without a change to anything that it would find if it were
// started by itself, but for where its output goes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpuwright {

// Signals that a program may be sent, held back from all threads that are made later and given out one by one; a write
// to a reader that went away fails instead of ending the program. One at a time in a process; made before the first
// thread. What came and was not waited for is forgotten at the end.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  struct Arrival {
    int number = 0;
    bool from_kernel = false;  // typed at the terminal, or the terminal went away: its whole foreground group has it
  };
  // Waits for the next one.
  Arrival wait() const;

 private:
  int descriptor_ = -1;
};

struct ChildOutputs {
  int out = -1, err = -1;  // descriptors that become its standard output and error; -1: ours
};

struct ChildEnd {
  int signal = 0;  // that ended it; 0: it ended by itself
  int exit_code = 0;
  double user_seconds = 0, system_seconds = 0;  // with those of its children that it waited for
  std::int64_t resident_peak_bytes = 0;         // of the largest of them
};

// `variable` ("NAME=VALUE") is added to its environment. Errors: not_found when there is no such program, bad_input
// when it cannot be executed, unavailable when the system gives no process.
Result<pid_t> start_child(const std::vector<std::string>& words, const ChildOutputs& outputs,
                          const std::string& variable);

// How it ended; nothing while it runs.
std::optional<ChildEnd> child_end(pid_t child);

// It was stopped (Ctrl-Z, SIGSTOP) and goes on only when somebody lets it.
bool is_stopped(pid_t child);

// Reads on from the descriptors and throws away what comes, until they end, in a process of its own, so that who still
// writes there is not ended by SIGPIPE when we are gone. Closes them here.
void drain_elsewhere(const std::vector<int>& descriptors);

}  // namespace gpuwright
