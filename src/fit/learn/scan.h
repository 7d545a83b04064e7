// Small tools for picking amounts out of log lines. Numbers are hostile: too long, negative or huge ones are no
// amounts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace gpuwright::fit {

struct Amount {
  Bytes bytes;
  double slack = 0;          // half of the last printed digit, in bytes
  std::size_t consumed = 0;  // characters of the text
};

// A number at the beginning of the text (spaces and quotes before it are passed over): "4403.49", "1,024", and
// "167,13" of locales with a decimal comma. `step` is the worth of its last digit.
struct ScannedNumber {
  double value = 0, step = 1;
  std::size_t consumed = 0;
};
std::optional<ScannedNumber> scan_number(std::string_view text);
std::optional<std::int64_t> scan_integer(std::string_view text);

// A number with a unit: B, bytes, KiB, MiB, GiB, TiB, KB, MB, GB (all powers of 1024: that is what these programs
// mean), KB and MB too. Nothing for another unit ("seconds"), a negative amount or more than a pebibyte.
std::optional<Amount> scan_amount(std::string_view text);

// What follows the marker; nothing when the line has none.
std::optional<std::string_view> after(std::string_view text, std::string_view marker);
// The amount that follows the marker.
std::optional<Amount> amount_after(std::string_view text, std::string_view marker);

// "n_ctx         = 8192": the value of the whole word `key` before an equals sign (or `separator`), trimmed.
std::optional<std::string_view> value_of(std::string_view line, std::string_view key, char separator = '=');
// key=value or 'key': value of Python's repr and argparse, up to a comma or bracket, quotes taken off.
std::optional<std::string_view> python_value(std::string_view line, std::string_view key);
// key=value or key="value" of Go's slog.
std::optional<std::string_view> slog_value(std::string_view line, std::string_view key);

// At most 160 bytes of the line.
std::string excerpt(std::string_view line);

}  // namespace gpuwright::fit
