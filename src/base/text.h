// Small string tools that several rooms need.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwright {

std::string_view trim(std::string_view text);
std::string lower(std::string_view text);  // ASCII only
std::vector<std::string_view> split(std::string_view text, char separator);
bool starts_with_ignoring_case(std::string_view text, std::string_view prefix);

// Whole-string conversions; nothing when anything is left over or the value is not finite.
std::optional<std::int64_t> to_integer(std::string_view text);
std::optional<double> to_number(std::string_view text);

bool is_utf8(std::string_view text);

// Text from outside, safe to print: control characters (escape sequences included) and invalid UTF-8 become \xNN.
std::string printable(std::string_view text);

// The candidate with the smallest edit distance to `word`, if it is near enough to be a slip of the finger.
std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& candidates);

// Columns that a terminal needs for the text (wide CJK characters take two).
int display_width(std::string_view utf8);

// 1234567 -> "1,234,567"
std::string with_thousands(std::int64_t value);
// 8030261248 -> "8.03 B"; 1.5e6 -> "1.50 M"
std::string in_billions(std::int64_t count);

}  // namespace gpuwright
