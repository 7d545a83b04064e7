// Terminal control sequences in text from outside: colours, cursor movements, window titles (ECMA-48 CSI and OSC).
#pragma once

#include <cstdint>

namespace gpuwright {

// Told byte by byte, it says which bytes belong to a sequence. A line end is never one: it means that a sequence was
// cut.
class EscapeFilter {
 public:
  bool takes(char c);
  bool inside() const { return state_ != State::text; }

 private:
  enum class State : std::uint8_t { text, begun, control, title, title_end };
  State state_ = State::text;
};

}  // namespace gpuwright
