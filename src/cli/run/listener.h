// What the job prints, heard by the rules of `explain` while it goes on.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "cli/run/spill.h"
#include "explain/scanner.h"

namespace gpuwright::cli {

// The lines of two outputs as one text, in the order in which they came. A line stays whole, unless it is very long.
class LineMerger {
 public:
  // Adds to `onto` what of the output is whole lines now.
  void add(std::size_t output, std::string_view bytes, std::string& onto);
  void finish(std::string& onto);

 private:
  std::array<std::string, 2> begun_;
};

// The beginning and the end of a text of any length.
class TextEnds {
 public:
  void add(std::string_view bytes);
  std::string text() const;

 private:
  std::string first_, last_;
};

// Reads in a thread of its own. Nothing is left out: what comes
// faster than it is read waits in a file, and where there is no room for that, who adds waits. Memory is bounded.
class Listener {
 public:
  // `source`: what the text is called where evidence is shown.
  explicit Listener(std::string source);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void add(std::size_t output, std::string_view bytes);  // from any thread
  std::int64_t unread();                                 // bytes that still wait

  struct Heard {
    std::unique_ptr<explain::RuleBook> book;  // which the scanner reads with
    std::unique_ptr<explain::Scanner> scanner;
    std::string ends;  // of the text
    std::int64_t bytes = 0;
    std::int64_t unread = 0;   // at the end of the patience
    bool whole = true;         // false: some of the text could not be kept until it was read
    bool ends_in_line = true;  // the last that came ended a line
  };
  // Everything was added. What is not read when the patience is over (nothing: it is endless) is left out. Fails where
  // the user's own rules cannot be read. Once.
  Result<Heard> finish(std::optional<std::chrono::milliseconds> patience = {});

 private:
  void run();
  bool take_next(std::string& text);

  std::string source_;
  std::mutex mutex_;
  std::condition_variable more_, room_, end_;
  LineMerger merger_;
  std::string waiting_, fresh_, fresh_end_;  // fresh_end_: lines without an end, at the end
  Spill spill_;                              // what came after `waiting_`
  std::int64_t bytes_ = 0;
  bool ended_ = false, done_ = false, impatient_ = false, in_line_ = false, whole_ = true;
  TextEnds ends_;                                    // of the thread, like what follows
  std::optional<Result<explain::RuleBook>> loaded_;  // until finish()
  std::unique_ptr<explain::RuleBook> book_;
  std::unique_ptr<explain::Scanner> scanner_;
  std::thread thread_;
};

}  // namespace gpuwright::cli
