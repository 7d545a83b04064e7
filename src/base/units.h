// Units are types: a raw double or int never crosses a room's face as bytes, watts or money.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuwright {

// A size in memory or on disk. Signed, so that differences ("short by 412 MiB") are ordinary values.
struct Bytes {
  std::int64_t count = 0;

  static constexpr Bytes from_kib(double kib) { return {static_cast<std::int64_t>(kib * 1024.0)}; }
  static constexpr Bytes from_mib(double mib) { return {static_cast<std::int64_t>(mib * 1048576.0)}; }
  static constexpr Bytes from_gib(double gib) { return {static_cast<std::int64_t>(gib * 1073741824.0)}; }
  constexpr double mib() const { return static_cast<double>(count) / 1048576.0; }
  constexpr double gib() const { return static_cast<double>(count) / 1073741824.0; }
  constexpr double gb() const { return static_cast<double>(count) / 1e9; }

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes operator+(Bytes other) const { return {count + other.count}; }
  constexpr Bytes operator-(Bytes other) const { return {count - other.count}; }
  constexpr Bytes operator*(std::int64_t factor) const { return {count * factor}; }
  constexpr Bytes operator/(std::int64_t divisor) const { return {count / divisor}; }
  constexpr Bytes& operator+=(Bytes other) { return count += other.count, *this; }
  constexpr Bytes& operator-=(Bytes other) { return count -= other.count, *this; }
  // The nearest whole byte of a fractional multiple.
  constexpr Bytes scaled(double factor) const {
    return {static_cast<std::int64_t>(static_cast<double>(count) * factor + (count < 0 ? -0.5 : 0.5))};
  }
};

// "17.24 GiB", "512 MiB", "96 KiB", "12 B": three or four significant digits, binary units.
std::string to_string(Bytes bytes);
// Reads "24GiB", "24 GB", "512m", "1.5T", "1024" (bytes). GB and MB are powers of 1000, GiB/MiB and bare G/M of 1024.
Result<Bytes> parse_bytes(std::string_view text);

struct Watts {
  double value = 0;
  constexpr auto operator<=>(const Watts&) const = default;
};
struct Celsius {
  double value = 0;
  constexpr auto operator<=>(const Celsius&) const = default;
};
struct Hertz {
  double value = 0;
  constexpr auto operator<=>(const Hertz&) const = default;
};
// A share of one: 0.9 is 90 %.
struct Ratio {
  double value = 0;
  constexpr auto operator<=>(const Ratio&) const = default;
};
// An amount in millionths of its currency (ISO 4217 code).
struct Money {
  std::int64_t micros = 0;
  std::string currency = "USD";
};

// Arithmetic on sizes read from files: nothing when the true result does not fit into 63 bits or an operand is
// negative.
std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b);
std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b);

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}
// The smallest multiple of `unit` that is not below `value`.
constexpr std::int64_t pad_to(std::int64_t value, std::int64_t unit) {
  return divide_up(value, unit) * unit;
}

}  // namespace gpuwright
