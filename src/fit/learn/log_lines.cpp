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
    const std::size_t plain = escapes_.inside() ? 0 : plain_length(bytes);
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
  if (escapes_.takes(c)) return;
  if (c == '\n') {
    end_line();
    ++number_;
    return;
  }
  if (c == '\r') return end_line();
  // What is left is a NUL: dropped.
}

void LogLines::end_line() {
  if (cut_) ++cut_lines_;
  if (!line_.empty()) sink_(number_, line_);
  line_.clear();
  cut_ = false;
}

}  // namespace gpuwright::fit
