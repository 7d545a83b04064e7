// What the job prints, heard by the rules of `explain` while it goes on.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
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

// Reads in a thread of its own. Nothing is left out: when it is far behind, who adds waits for it. Memory is bounded.
class Listener {
 public:
  // `source`: what the text is called where evidence is shown.
  explicit Listener(std::string source);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void add(std::size_t output, std::string_view bytes);  // from any thread

  struct Heard {
    std::unique_ptr<explain::RuleBook> book;  // which the scanner reads with
    std::unique_ptr<explain::Scanner> scanner;
    std::string ends;  // of the text
    std::int64_t bytes = 0;
    bool ends_in_line = true;  // the last that came ended a line
  };
  // Everything was added. Fails where the user's own rules cannot be read. Once.
  Result<Heard> finish();

 private:
  void run();

  std::string source_;
  std::mutex mutex_;
  std::condition_variable more_, room_;
  LineMerger merger_;
  std::string waiting_;
  std::int64_t bytes_ = 0;
  bool ended_ = false, in_line_ = false;
  TextEnds ends_;                                    // of the thread, like what follows
  std::optional<Result<explain::RuleBook>> loaded_;  // until finish()
  std::unique_ptr<explain::RuleBook> book_;
  std::unique_ptr<explain::Scanner> scanner_;
  std::thread thread_;
};

}  // namespace gpuwright::cli
