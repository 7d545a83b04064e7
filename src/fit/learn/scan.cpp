#include "fit/learn/scan.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace gpuwright::fit {
namespace {

constexpr std::size_t kMostDigits = 24;
constexpr double kMostBytes = 1125899906842624.0;  // a pebibyte
constexpr std::size_t kExcerpt = 160;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

struct Unit {
  std::string_view name;
  double bytes;
};
// Longer names before those they begin with.
constexpr std::array kUnits = {
    Unit{"bytes", 1},
    Unit{"KiB", 1024},
    Unit{"MiB", 1048576.0},
    Unit{"GiB", 1073741824.0},
    Unit{"TiB", 1099511627776.0},
    Unit{"KB", 1024},
    Unit{"kB", 1024},
    Unit{"MB", 1048576.0},
    Unit{"GB", 1073741824.0},
    Unit{"TB", 1099511627776.0},
    Unit{"B", 1},
};

const Unit* unit_at(std::string_view text) {
  for (const Unit& unit : kUnits)
    if (text.starts_with(unit.name) && (text.size() == unit.name.size() || !is_word(text[unit.name.size()])))
      return &unit;
  return nullptr;
}

// Where the whole word `key` ends in the line.
std::optional<std::size_t> end_of_word(std::string_view line, std::string_view key, std::size_t from) {
  for (std::size_t at = line.find(key, from); at != std::string_view::npos; at = line.find(key, at + 1)) {
    const std::size_t end = at + key.size();
    if ((at == 0 || !is_word(line[at - 1])) && (end == line.size() || !is_word(line[end]))) return end;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ScannedNumber> scan_number(std::string_view text) {
  std::size_t begin = 0;
  while (begin < text.size() && (text[begin] == ' ' || text[begin] == '\t' || text[begin] == '"')) ++begin;
  std::string digits;
  std::size_t at = begin, fraction = 0;
  bool in_fraction = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (is_digit(c)) {
      digits += c;
      if (in_fraction) ++fraction;
      if (digits.size() > kMostDigits) return std::nullopt;
      continue;
    }
    if ((c != '.' && c != ',') || at + 1 >= text.size() || !is_digit(text[at + 1]) || digits.empty()) break;
    std::size_t run = 1;
    while (at + 1 + run < text.size() && is_digit(text[at + 1 + run])) ++run;
    if (c == ',' && run == 3 && !in_fraction) continue;  // thousands
    if (in_fraction) break;
    in_fraction = true;
    digits += '.';
  }
  if (digits.empty()) return std::nullopt;
  const auto value = to_number(digits);
  if (!value) return std::nullopt;
  return ScannedNumber{*value, std::pow(10.0, -static_cast<double>(fraction)), at};
}

std::optional<std::int64_t> scan_integer(std::string_view text) {
  const auto number = scan_number(text);
  if (!number || number->step < 1 || number->value > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(number->value);
}

std::optional<Amount> scan_amount(std::string_view text) {
  const auto number = scan_number(text);
  if (!number) return std::nullopt;
  std::size_t at = number->consumed;
  while (at < text.size() && text[at] == ' ') ++at;
  const Unit* unit = unit_at(text.substr(at));
  if (unit == nullptr || number->value * unit->bytes > kMostBytes) return std::nullopt;
  return Amount{Bytes{static_cast<std::int64_t>(std::llround(number->value * unit->bytes))},
                number->step * unit->bytes / 2, at + unit->name.size()};
}

std::optional<std::string_view> after(std::string_view text, std::string_view marker) {
  const auto at = text.find(marker);
  if (at == std::string_view::npos) return std::nullopt;
  return text.substr(at + marker.size());
}

std::optional<Amount> amount_after(std::string_view text, std::string_view marker) {
  const auto rest = after(text, marker);
  return rest ? scan_amount(*rest) : std::nullopt;
}

std::optional<std::string_view> value_of(std::string_view line, std::string_view key, char separator) {
  for (auto end = end_of_word(line, key, 0); end; end = end_of_word(line, key, *end)) {
    const auto at = line.find_first_not_of(' ', *end);
    if (at != std::string_view::npos && line[at] == separator) return trim(line.substr(at + 1));
  }
  return std::nullopt;
}

std::optional<std::string_view> python_value(std::string_view line, std::string_view key) {
  for (auto end = end_of_word(line, key, 0); end; end = end_of_word(line, key, *end)) {
    std::string_view rest = line.substr(*end);
    if (rest.starts_with('\'') || rest.starts_with('"')) rest.remove_prefix(1);
    if (!rest.starts_with('=') && !rest.starts_with(':')) continue;
    rest = trim(rest.substr(1));
    if (rest.empty()) continue;
    if (rest[0] == '\'' || rest[0] == '"') return rest.substr(1, rest.find(rest[0], 1) - 1);
    return trim(rest.substr(0, rest.find_first_of(",})] ")));
  }
  return std::nullopt;
}

std::optional<std::string_view> slog_value(std::string_view line, std::string_view key) {
  for (auto end = end_of_word(line, key, 0); end; end = end_of_word(line, key, *end)) {
    if (*end >= line.size() || line[*end] != '=') continue;
    const std::string_view rest = line.substr(*end + 1);
    if (rest.starts_with('"')) return rest.substr(1, rest.find('"', 1) - 1);
    return rest.substr(0, rest.find(' '));
  }
  return std::nullopt;
}

std::string excerpt(std::string_view line) {
  std::string_view text = trim(line).substr(0, kExcerpt);
  // Not in the middle of a character.
  if (text.size() == kExcerpt)
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.remove_suffix(1);
  if (text.size() < trim(line).size() && !text.empty() && (static_cast<unsigned char>(text.back()) & 0x80) != 0)
    text.remove_suffix(1);
  return std::string(text);
}

}  // namespace gpuwright::fit
