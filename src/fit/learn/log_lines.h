// Lines of a log that nobody vouches for: any size, any bytes. Memory stays below the longest line that is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/escapes.h"

namespace gpuwright::fit {

// Cuts bytes that arrive in pieces into lines. LF, CR LF and a lone CR (progress bars) end a line; terminal colours and
// titles (ECMA-48 CSI and OSC sequences) and NULs are taken out. Of a line longer than kLongestLine the beginning is
// kept and the rest passed over. Invalid UTF-8 stays as it is: printable() shows it.
class LogLines {
 public:
  static constexpr std::size_t kLongestLine = 16 << 10;
  // The number of a line counts from 1 and counts lines that end in LF, as editors do.
  using Sink = std::function<void(std::int64_t number, std::string_view line)>;

  explicit LogLines(Sink sink) : sink_(std::move(sink)) {}
  void feed(std::string_view bytes);
  void finish();  // hands over a last line without an end

  std::int64_t lines() const { return number_ - 1; }
  std::int64_t cut_lines() const { return cut_lines_; }

 private:
  void take(char c);
  void end_line();

  Sink sink_;
  std::string line_;
  std::int64_t number_ = 1;
  std::int64_t cut_lines_ = 0;
  bool cut_ = false;
  EscapeFilter escapes_;
};

}  // namespace gpuwright::fit
