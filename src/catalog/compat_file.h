// Rows of data/compat.toml and setup's tables, read with checks: a wrong row is named with its line. Only .cpp files
// include this.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuwright::catalog {

class TomlRow {
 public:
  // The table and `origin`, the file's name for messages, must outlive this.
  TomlRow(const toml::table& table, std::string_view origin) : table_(table), origin_(origin) {}

  tl::unexpected<Error> wrong(std::string what) const {
    return fail_at(ErrorCode::bad_input, {std::string(origin_), table_.source().begin.line, {}}, std::move(what));
  }
  bool has(std::string_view key) const { return table_.contains(key); }
  const toml::table& table() const { return table_; }
  std::string_view origin() const { return origin_; }

  Result<std::string> text(std::string_view key) const {
    const auto value = table_[key].value_exact<std::string>();
    if (!value || value->empty()) return wrong(fmt::format("{} has to be a text", key));
    return *value;
  }
  Result<std::optional<std::string>> optional_text(std::string_view key) const {
    if (!has(key)) return std::optional<std::string>();
    return std::optional(GW_TRY(text(key)));
  }
  // A text that opens with a digit: "12.8.1", "550.54.14".
  Result<std::string> version(std::string_view key) const {
    std::string value = GW_TRY(text(key));
    if (value[0] < '0' || value[0] > '9') return wrong(fmt::format("{} has to be a version", key));
    return value;
  }
  Result<std::optional<std::string>> optional_version(std::string_view key) const {
    if (!has(key)) return std::optional<std::string>();
    return std::optional(GW_TRY(version(key)));
  }
  Result<int> integer(std::string_view key, int low, int high) const {
    const auto value = table_[key].value_exact<std::int64_t>();
    if (!value || *value < low || *value > high)
      return wrong(fmt::format("{} has to be a whole number from {} to {}", key, low, high));
    return static_cast<int>(*value);
  }
  Result<std::optional<int>> optional_integer(std::string_view key, int low, int high) const {
    if (!has(key)) return std::optional<int>();
    return std::optional(GW_TRY(integer(key, low, high)));
  }
  Result<bool> flag(std::string_view key, bool otherwise) const {
    if (!has(key)) return otherwise;
    const auto value = table_[key].value_exact<bool>();
    if (!value) return wrong(fmt::format("{} has to be true or false", key));
    return *value;
  }
  // A list of texts; an absent one is empty.
  Result<std::vector<std::string>> texts(std::string_view key) const {
    std::vector<std::string> values;
    if (!has(key)) return values;
    const toml::array* array = table_[key].as_array();
    if (array == nullptr) return wrong(fmt::format("{} has to be a list of texts", key));
    for (const toml::node& item : *array) {
      const auto value = item.value_exact<std::string>();
      if (!value) return wrong(fmt::format("{} has to be a list of texts", key));
      values.push_back(*value);
    }
    return values;
  }
  // Calls visit for each table of the list `key`; an absent list has none.
  Status rows(std::string_view key, const std::function<Status(const TomlRow&)>& visit) const {
    if (!has(key)) return {};
    const toml::array* array = table_[key].as_array();
    if (array == nullptr) return wrong(fmt::format("{} has to be a list of tables", key));
    for (const toml::node& node : *array) {
      const toml::table* table = node.as_table();
      if (table == nullptr) return wrong(fmt::format("{} has to be a list of tables", key));
      GW_TRY(visit(TomlRow(*table, origin_)));
    }
    return {};
  }

 private:
  const toml::table& table_;
  std::string_view origin_;
};

inline Result<toml::table> parse_toml_file(std::string_view text, std::string_view origin) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    return fail_at(ErrorCode::bad_input, {std::string(origin), error.source().begin.line, {}},
                   std::string(error.description()));
  }
}

}  // namespace gpuwright::catalog
