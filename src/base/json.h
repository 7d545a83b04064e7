// A small JSON tree for configuration files and answers. The tree keeps the order of members,
// compiles fast, and is bounded: documents deeper or larger than the limits are refused before memory is spent.
// Very large documents (safetensors headers and indexes) are streamed by their own readers instead.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace gpuwright {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}
  template <class T>
  Json(const std::optional<T>& value) {
    if (value) *this = Json(*value);
  }

  static Json object() { return Json(Object{}); }
  static Json array() { return Json(Array{}); }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_number() const { return as_double().has_value(); }

  // Each gives nothing when the value is of another kind. as_int takes 4096.0 as 4096, never rounds.
  std::optional<bool> as_bool() const;
  std::optional<std::int64_t> as_int() const;
  std::optional<double> as_double() const;
  std::optional<std::string_view> as_string() const;
  // Empty when the value is of another kind.
  const Array& items() const;
  const Object& members() const;

  // The member's value, or nullptr when this is no object or has no such member.
  const Json* find(std::string_view key) const;

  // Building: sets (or replaces) a member of an object, appends to an array. Null becomes an object or array first.
  Json& set(std::string_view key, Json value);
  Json& push(Json value);

  // Valid JSON whatever the strings hold (control characters escaped, invalid UTF-8 replaced, NaN as null).
  // indent 0 is one line.
  std::string dump(int indent = 2) const;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

struct JsonLimits {
  std::int64_t max_bytes = 64 << 20;
  int max_depth = 64;
  std::int64_t max_values = 4'000'000;
};

// `name` is the file that errors name.
Result<Json> parse_json(std::string_view text, std::string_view name, const JsonLimits& limits = {});

}  // namespace gpuwright
