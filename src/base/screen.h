// A terminal as a screen that is redrawn in place, and given back as it was found: when the program ends, is killed,
// or dies of a fault.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/signals.h"

namespace gpuwright {

struct ScreenSize {
  int columns = 80, lines = 24;
};

struct ScreenEvent {
  int signal = 0;  // that asks the program to end
  char key = 0;
  bool resized = false;
};

// Not thread-safe but for wake(); one at a time.
class Screen {
 public:
  // The output is a terminal of a kind (TERM) that understands what is drawn here.
  static bool possible();

  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  ScreenSize size() const;
  // Shows the lines of the text from the top; what was there before is overwritten in place, so that nothing
  // flickers. Lines beyond the last of the screen are left out; lines that are too wide are cut by the terminal.
  void draw(std::string_view text);
  // Waits for a key, a signal, a change of size, wake(), or the end of the time.
  ScreenEvent wait(std::chrono::milliseconds time);
  void wake() { signals_.wake(); }

 private:
  Signals signals_;
  bool reads_keys_ = false;
};

}  // namespace gpuwright
