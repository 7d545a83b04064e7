#include "fit/learn/log_lines.h"

#include <algorithm>

namespace gpuwright::fit {
namespace {

bool is_special(char c) {
  return c == '\n' || c == '\r' || c == '\0' || c == '\033';
}

// How many bytes go into the line as they are.
std::size_t plain_length(std::string_view bytes) {
  return static_cast<std::size_t>(std::find_if(bytes.begin(), bytes.end(), is_special) - bytes.begin());
}

}  // namespace

void LogLines::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t plain = escape_ == Escape::none ? plain_length(bytes) : 0;
    const std::size_t kept = std::min(plain, kLongestLine - line_.size());
    line_.append(bytes.substr(0, kept));
    cut_ = cut_ || kept < plain;
    bytes.remove_prefix(plain);
    if (bytes.empty()) return;
    take(bytes.front());
    bytes.remove_prefix(1);
  }
}

void LogLines::finish() {
  const bool open = !line_.empty() || cut_;
  end_line();
  if (open) ++number_;
}

void LogLines::take(char c) {
  if (c == '\n') {
    escape_ = Escape::none;
    end_line();
    ++number_;
    return;
  }
  if (swallow_escape(c)) return;
  if (c == '\r') return end_line();
  // What is left is a NUL: dropped.
}

// True when the byte belongs to an escape sequence.
bool LogLines::swallow_escape(char c) {
  switch (escape_) {
    case Escape::none:
      if (c == '\033') escape_ = Escape::begun;
      return c == '\033';
    case Escape::begun:
      escape_ = c == '[' ? Escape::control : c == ']' ? Escape::title : Escape::none;
      return true;
    case Escape::control:  // parameters and intermediates, then one byte from @ to ~
      if (c >= '@' && c <= '~') escape_ = Escape::none;
      return true;
    case Escape::title:  // ends in BEL or ESC backslash
      if (c == '\a') escape_ = Escape::none;
      if (c == '\033') escape_ = Escape::title_end;
      return true;
    case Escape::title_end:
      escape_ = Escape::none;
      return true;
  }
  return false;
}

void LogLines::end_line() {
  if (cut_) ++cut_lines_;
  if (!line_.empty()) sink_(number_, line_);
  line_.clear();
  cut_ = false;
}

}  // namespace gpuwright::fit
