// A table of a TOML file, read key by key with checks; what is left over at the end was a slip of the finger. Only
// sim's .cpp files include this.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sim/curve.h"

namespace gpuwright::sim {

struct Range {
  double low = 0, high = 1e15;
};

class TomlTable {
 public:
  // `origin` and the table must outlive this; `kind` is what messages call it: "a GPU".
  TomlTable(const toml::table& table, std::string_view origin, std::string kind);

  bool has(std::string_view key) const { return table_.contains(key); }
  Result<std::optional<std::string>> text(std::string_view key);
  Result<std::optional<double>> number(std::string_view key, Range range);
  Result<std::optional<std::int64_t>> integer(std::string_view key, Range range);
  Result<std::optional<bool>> flag(std::string_view key);
  // One text or a list of texts; integers likewise. Nothing and an empty list are the same.
  Result<std::vector<std::string>> texts(std::string_view key);
  Result<std::vector<std::int64_t>> integers(std::string_view key, Range range);
  // A number, or {kind = "sine" | "ramp" | "step", ...}, or {points = [[seconds, value], ...]}.
  Result<std::optional<Curve>> curve(std::string_view key, Range range);
  // Calls visit(TomlTable&) for each table of the list.
  Status tables(std::string_view key, const std::string& kind, const std::function<Status(TomlTable&)>& visit);
  Status table(std::string_view key, const std::string& kind, const std::function<Status(TomlTable&)>& visit);
  // Position of the text among the words, or the given default.
  Result<int> word(std::string_view key, const std::vector<std::string>& words, int otherwise);

  // Fails when a key was not asked for.
  Status finish();
  tl::unexpected<Error> wrong(std::string_view key, std::string what, std::string hint = {}) const;
  // About the table as a whole: the line where it begins.
  tl::unexpected<Error> refuse(std::string what, std::string hint = {}) const;

 private:
  const toml::node* get(std::string_view key);
  tl::unexpected<Error> wrong_at(const toml::node& node, std::string what, std::string hint) const;
  Result<std::string> text_of(const toml::node& node) const;
  Result<double> number_of(const toml::node& node, Range range) const;
  Result<std::int64_t> integer_of(const toml::node& node, Range range) const;
  Result<Curve> curve_of(const toml::table& table, Range range);
  Result<Curve> points_of(const toml::node& node, Range range, double period) const;

  const toml::table& table_;
  std::string_view origin_;
  std::string kind_;
  std::set<std::string, std::less<>> asked_;
};

Result<toml::table> parse_toml(std::string_view text, std::string_view origin);

}  // namespace gpuwright::sim
