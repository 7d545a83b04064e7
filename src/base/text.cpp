#include "base/text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace gpuwright {
namespace {

template <class Number>
std::optional<Number> convert(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Insertions, deletions, other letters, and two neighbours exchanged ("4900" for "4090"): optimal string alignment.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && lower(text.substr(0, prefix.size())) == lower(prefix);
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  return convert<std::int64_t>(text);
}

std::optional<double> to_number(std::string_view text) {
  const auto value = convert<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

bool is_utf8(std::string_view text) {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (auto left = static_cast<utf8proc_ssize_t>(text.size()); left > 0;) {
    utf8proc_int32_t point = -1;
    const utf8proc_ssize_t length = utf8proc_iterate(at, left, &point);
    if (length <= 0) return false;
    at += length;
    left -= length;
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string result;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t point = -1;
    const auto left = static_cast<utf8proc_ssize_t>(text.size() - at);
    const utf8proc_ssize_t length = utf8proc_iterate(bytes + at, left, &point);
    const bool control =
        point >= 0 && (point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x2028 || point == 0x2029 ||
                       (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069));
    const auto step = length > 0 ? static_cast<std::size_t>(length) : 1;
    if (length > 0 && !control)
      result.append(text.substr(at, step));
    else
      for (std::size_t i = 0; i < step; ++i) result += fmt::format("\\x{:02x}", bytes[at + i]);
    at += step;
  }
  return result;
}

std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string wanted = lower(word.substr(0, 64));
  const std::string* best = nullptr;
  // Less than half of a short word may differ: "24" is no slip for "t4".
  std::size_t best_distance = std::min(wanted.size() / 3 + 2, (wanted.size() + 1) / 2);
  std::size_t best_prefix = 0;
  for (const std::string& candidate : candidates) {
    const std::string plain = lower(candidate);
    const std::size_t distance = edit_distance(wanted, plain);
    const std::size_t prefix = common_prefix(wanted, plain);
    if (distance < best_distance || (best != nullptr && distance == best_distance && prefix > best_prefix)) {
      best_distance = distance;
      best_prefix = prefix;
      best = &candidate;
    }
  }
  return best ? std::optional(*best) : std::nullopt;
}

int display_width(std::string_view utf8) {
  int width = 0;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(utf8.data());
  for (std::size_t at = 0; at < utf8.size();) {
    utf8proc_int32_t point = -1;
    const utf8proc_ssize_t length =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(utf8.size() - at), &point);
    width += length > 0 ? utf8proc_charwidth(point) : 1;
    at += length > 0 ? static_cast<std::size_t>(length) : 1;
  }
  return width;
}

std::string with_thousands(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string in_billions(std::int64_t count) {
  const double value = static_cast<double>(count);
  if (count >= 1'000'000'000'000) return fmt::format("{:.2f} T", value / 1e12);
  if (count >= 1'000'000'000) return fmt::format("{:.2f} B", value / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.1f} M", value / 1e6);
  return with_thousands(count);
}

}  // namespace gpuwright
