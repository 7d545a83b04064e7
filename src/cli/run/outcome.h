// All that is known of a job when it has ended: what the reports are made from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/child.h"
#include "cli/run/gpu_watch.h"
#include "explain/explain.h"

namespace gpuwright::cli {

// What the figures say that could be better, or what they show, with the figures.
struct RunAdvice {
  std::string id;    // "input-bound"
  std::string text;  // for people, in their language
};

struct Outcome {
  std::vector<std::string> command;
  std::string began;  // ISO 8601
  double seconds = 0;
  ChildEnd end;
  int exit_code = 0;  // that we give
  std::int64_t bytes_printed = 0;
  std::int64_t bytes_unread = 0;  // of these: the rules did not get to them in time
  int processors = 1;             // that the job may use
  bool left_running = false;      // descendants still held its output open
  bool kernel_log_read = false;
  Watched gpus;
  std::optional<explain::Explanation> explanation;  // nothing when the rules could not be read
  std::vector<RunAdvice> advice;
  std::vector<std::string> notes;

  bool failed() const { return end.signal != 0 || end.exit_code != 0; }
};

// "ended by signal 9 (SIGKILL)", "ended with exit code 1".
std::string end_text(const ChildEnd& end);
std::string signal_name(int signal);  // "SIGKILL"

}  // namespace gpuwright::cli
