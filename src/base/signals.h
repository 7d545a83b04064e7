// Signals as events of a loop instead of sudden death: what ends the program (Ctrl-C, kill, a closed terminal) and a
// change of the terminal's size.
#pragma once

#include <chrono>

namespace gpuwright {

// Catches SIGINT, SIGTERM, SIGHUP and SIGWINCH from its making to its end, in which the former dispositions return.
// Ignored ones (nohup) stay ignored. One at a time in a process; wake() may be called from any thread.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Readable when something has come.
  int descriptor() const;
  // The next signal that came; 0 when none did.
  int next();
  // Waits for one; 0 when the time is over or wake() was called.
  int wait(std::chrono::milliseconds time);
  void wake();
};

// SIGINT, SIGTERM or SIGHUP: the program is asked to end.
bool asks_to_end(int signal);

}  // namespace gpuwright
