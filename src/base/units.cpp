#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace gpuwright {
namespace {

std::string with_unit(double value, const char* unit) {
  const double size = std::abs(value);
  const int decimals = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, unit);
}

}  // namespace

std::string to_string(Bytes bytes) {
  const double count = static_cast<double>(bytes.count);
  const double size = std::abs(count);
  if (size >= 1099511627776.0 * 10) return with_unit(count / 1099511627776.0, "TiB");
  // GiB keeps two decimals up to 1000: that is the digit in which two settings usually differ.
  if (size >= 1073741824.0) return fmt::format("{:.2f} GiB", count / 1073741824.0);
  if (size >= 1048576.0) return with_unit(count / 1048576.0, "MiB");
  if (size >= 1024.0) return with_unit(count / 1024.0, "KiB");
  return fmt::format("{} B", bytes.count);
}

Result<Bytes> parse_bytes(std::string_view text) {
  const std::string_view trimmed = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), value);
  const std::string hint = "write a size such as 24GiB, 24GB, 512MiB or 1073741824";
  if (error != std::errc() || !std::isfinite(value) || value < 0)
    return fail(ErrorCode::bad_input, fmt::format("\"{}\" is not a size", text), hint);
  const std::string unit = lower(trim(trimmed.substr(static_cast<std::size_t>(end - trimmed.data()))));
  constexpr std::string_view kPrefixes = "kmgtp";
  double factor = 1;
  if (!unit.empty() && unit != "b") {
    const std::size_t prefix = kPrefixes.find(unit[0]);
    const std::string_view rest = std::string_view(unit).substr(1);
    if (prefix == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib" || rest == "i"))
      return fail(ErrorCode::bad_input, fmt::format("\"{}\" ends in an unknown unit", text), hint);
    factor = std::pow(rest == "b" ? 1000.0 : 1024.0, static_cast<double>(prefix + 1));
  }
  if (value * factor > 9.0e18) return fail(ErrorCode::bad_input, fmt::format("\"{}\" is too large", text), hint);
  return Bytes{static_cast<std::int64_t>(std::llround(value * factor))};
}

std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

}  // namespace gpuwright
