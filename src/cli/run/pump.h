// One output of the job on its way to ours: every byte, in order, as fast as both ends take it; a copy is heard.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/pseudo_terminal.h"

namespace gpuwright::cli {

// Works in a thread of its own. The descriptor `from` belongs to the pump.
class Pump {
 public:
  using Copy = std::function<void(std::string_view)>;

  // `terminal`: whose master `from` is; null for a pipe. It must outlive the pump.
  Pump(int from, int to, PseudoTerminal* terminal, Copy copy);
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  // The job has ended. What it printed is passed on; then, where its descendants hold the output open, what they print
  // within a short grace. Returns when that is done; a reader of ours that stands still is waited for.
  void finish();

  // After finish(): gives away the descriptor where somebody still has the other end; -1 where nobody has.
  int release();
  // errno of the first write that failed for another reason than a reader that went away.
  int write_error() const { return write_error_; }

 private:
  void run();
  bool wait_for_more();
  bool pass_on();
  void write_out(std::string_view bytes);
  void close_from();

  int from_, to_, ended_;  // ended_: an eventfd
  PseudoTerminal* terminal_;
  Copy copy_;
  int write_error_ = 0;
  bool gone_ = false;  // the reader went away
  std::vector<char> piece_;
  bool ending_ = false;
  std::int64_t owed_ = 0;  // bytes that were there when the job ended, and are not passed on yet
  std::chrono::steady_clock::time_point deadline_;
  std::thread thread_;  // last: it begins when all else is there
};

}  // namespace gpuwright::cli
