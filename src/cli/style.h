// Colours that carry meaning, and the wrapping of paragraphs.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "cli/command.h"

namespace gpuwright::cli {

enum class Tone { plain, heading, name, good, warning, bad, dim };

// The text with the tone's colour when the console shows colours, else as it is.
std::string paint(const Console& console, Tone tone, std::string_view text);

// Breaks the text at spaces so that no line (indent included) is wider than `width` columns; every line after the
// first opens with `indent` spaces. Newlines in the text stay. Chinese text, which has no spaces, breaks anywhere.
std::string wrap(std::string_view text, int width, int indent = 0);

// The text in the console's language, or as it is where nobody has translated it.
std::string_view say(const Console& console, std::string_view english);
// The same, filled: say(console, "short by {}", size).
template <class... Values>
std::string say(const Console& console, std::string_view english, const Values&... values) {
  return fmt::format(fmt::runtime(say(console, english)), values...);
}

// A line of its own above a part of the answer: "What takes the memory".
void print_heading(const Console& console, std::string_view title);

}  // namespace gpuwright::cli
