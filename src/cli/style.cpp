#include "cli/style.h"

#include <utf8proc.h>

#include <vector>

#include "base/text.h"

namespace gpuwright::cli {
namespace {

std::string_view code_of(Tone tone) {
  switch (tone) {
    case Tone::plain:
      return "";
    case Tone::heading:
      return "1";
    case Tone::name:
      return "36";
    case Tone::good:
      return "32";
    case Tone::warning:
      return "33";
    case Tone::bad:
      return "31";
    case Tone::dim:
      return "2";
  }
  return "";
}

std::string_view first_character(std::string_view text) {
  utf8proc_int32_t point = -1;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &point);
  return text.substr(0, length > 0 ? static_cast<std::size_t>(length) : 1);
}

// Where a line may break: after spaces, after each character that is two columns wide, and within words that are wider
// than a line (paths of sources): after their last separator that still stands on it.
std::vector<std::string_view> pieces_of(std::string_view line, int width) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0, separator = 0;
  for (std::size_t at = 0; at < line.size();) {
    const std::string_view character = first_character(line.substr(at));
    at += character.size();
    if (character == "/" || character == "_" || character == "-" || character == ",") separator = at;
    const bool space_ends = character == " " && (at == line.size() || line[at] != ' ');
    const bool too_wide = separator > begin && line[begin] != ' ' &&
                          display_width(line.substr(begin, at - begin)) >= width && at < line.size();
    if (!space_ends && !too_wide && display_width(character) < 2) continue;
    const std::size_t end = space_ends || !too_wide ? at : separator;
    pieces.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  if (begin < line.size()) pieces.push_back(line.substr(begin));
  return pieces;
}

void drop_trailing_spaces(std::string& text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
}

}  // namespace

std::string paint(const Console& console, Tone tone, std::string_view text) {
  if (!console.color || tone == Tone::plain || text.empty()) return std::string(text);
  std::string painted = "\033[";
  painted.append(code_of(tone)).append("m").append(text).append("\033[0m");
  return painted;
}

std::string wrap(std::string_view text, int width, int indent) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string result;
  for (std::string_view line : split(text, '\n')) {
    if (!result.empty()) result += line.empty() ? "\n" : "\n" + margin;
    int column = indent;
    for (std::string_view piece : pieces_of(line, width - indent)) {
      const int needed = display_width(trim(piece));
      if (column > indent && column + needed > width) {
        drop_trailing_spaces(result);
        result += "\n" + margin;
        column = indent;
      }
      result += piece;
      column += display_width(piece);
    }
    drop_trailing_spaces(result);
  }
  return result;
}

std::string_view say(const Console& console, std::string_view english) {
  return in_language(console.language, english);
}

void print_heading(const Console& console, std::string_view title) {
  console.out << '\n' << paint(console, Tone::heading, wrap(title, console.width, 2)) << '\n';
}

}  // namespace gpuwright::cli
