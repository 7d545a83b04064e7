#include "base/escapes.h"

namespace gpuwright {

bool EscapeFilter::takes(char c) {
  if (c == '\n') {
    state_ = State::text;
    return false;
  }
  switch (state_) {
    case State::text:
      if (c == '\x1b') state_ = State::begun;
      return c == '\x1b';
    case State::begun:
      state_ = c == '[' ? State::control : c == ']' ? State::title : State::text;
      return true;
    case State::control:  // parameters and intermediates, then one byte from @ to ~
      if (c >= '@' && c <= '~') state_ = State::text;
      return true;
    case State::title:  // ends in BEL or ESC backslash
      if (c == '\a') state_ = State::text;
      if (c == '\x1b') state_ = State::title_end;
      return true;
    case State::title_end:
      state_ = State::text;
      return true;
  }
  return false;
}

}  // namespace gpuwright
