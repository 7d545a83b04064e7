// What the program's standard streams are connected to, and writing to them so that a failure is noticed.
#pragma once

#include <termios.h>

#include <array>
#include <optional>
#include <streambuf>

namespace gpuwright {

bool is_terminal(int descriptor);
// Columns of the terminal; nothing when the descriptor is none or does not tell.
std::optional<int> terminal_width(int descriptor);
// The locale of the environment (LC_ALL, LC_CTYPE, LANG) is UTF-8.
bool locale_is_utf8();

// Opens /dev/null for those of descriptors 0, 1 and 2 that the caller closed, so that no file that is opened later
// takes their place and receives what is printed. Writing to such an output still fails.
void occupy_standard_descriptors();

// We are the ones who are typed to at the terminal of some standard stream: not in the background, not without one.
bool is_in_foreground();

// While it lives, lines end at the left edge of the terminal, whatever mode a program left it in. Does nothing where
// the descriptor is no terminal.
class CookedLines {
 public:
  explicit CookedLines(int descriptor);
  ~CookedLines();
  CookedLines(const CookedLines&) = delete;
  CookedLines& operator=(const CookedLines&) = delete;

 private:
  int descriptor_;
  std::optional<termios> before_;
};

// A stream buffer over a file descriptor that remembers the errno of the first write that failed. Not thread-safe.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor);
  ~DescriptorBuffer() override;
  int error() const { return error_; }

 protected:
  int_type overflow(int_type character) override;
  int sync() override;

 private:
  int descriptor_;
  int error_ = 0;
  std::array<char, 1 << 15> buffer_;
};

}  // namespace gpuwright
