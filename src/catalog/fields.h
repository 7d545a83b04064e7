// The fields of an accelerator as filters and sorting name them: "vram", "fp16", "tdp".
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "catalog/accelerator.h"

namespace gpuwright::catalog {

// 8.9 of "8.9", 13.0 of "13.0": compared piece by piece, so 10.3 > 9.0.
struct Version {
  int major = 0;
  int minor = 0;
  // clang-tidy 14 takes the 0 inside a defaulted comparison for a pointer.
  auto operator<=>(const Version&) const = default;  // NOLINT(modernize-use-nullptr)
};
std::optional<Version> parse_version(std::string_view text);

enum class FieldKind { text, number, version, flag, toolkit };
enum class FieldUnit { none, gib, watts, gb_per_second, tera, mhz, money };

// monostate: unknown.
using FieldValue = std::variant<std::monostate, std::string, double, Version, bool, std::pair<Version, Version>>;

struct Field {
  std::string_view name;
  std::string_view synonym;  // may be empty
  FieldKind kind;
  FieldUnit unit;
  std::string_view help;
  FieldValue (*value)(const Accelerator&);
};

std::span<const Field> fields();
const Field* field_named(std::string_view name);

// Factor of a unit behind a number, relative to the field's own: "tb" of a GiB field is 1024. Nothing for foreign ones.
std::optional<double> unit_factor(FieldUnit unit, std::string_view text);

// "no field "vramm"" with the nearest as hint.
tl::unexpected<Error> no_such_field(std::string_view name);

}  // namespace gpuwright::catalog
