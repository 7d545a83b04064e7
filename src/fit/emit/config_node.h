// A configuration file as its reader needs it: a tree whose every value knows its line. JSON and the part of YAML that
// configuration files of this field use: block and flow maps and lists, plain and quoted scalars, comments. Anchors,
// tags, block scalars and several documents are refused, not guessed at.
//
// The text may be hostile: its size, depth and number of values are bounded before memory is spent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuwright::fit {

struct ConfigMember;

struct ConfigNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };

  Kind kind = Kind::null;
  std::string text;       // of a scalar
  bool quoted = false;    // then "true" and "1" are strings
  std::int64_t line = 0;  // from 1; of a member: its key's
  std::vector<ConfigNode> items;
  std::vector<ConfigMember> members;

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_list() const { return kind == Kind::list; }
  bool is_map() const { return kind == Kind::map; }
  // The member's value, or nullptr.
  const ConfigNode* find(std::string_view key) const;

  // Nothing when the value is of another kind. Quoted numbers and truths are taken too: DeepSpeed, accelerate and
  // argument parsers read them alike. as_int takes 5e8, never rounds.
  std::optional<bool> as_bool() const;  // true/false, yes/no, on/off in any case
  std::optional<std::int64_t> as_int() const;
  std::optional<double> as_double() const;
  std::optional<std::string_view> as_string() const;
};

struct ConfigMember {
  std::string key;
  ConfigNode value;
};

constexpr std::int64_t kLargestConfig = 1 << 20;

// JSON when the first character is a brace, else YAML. The root is always a map.
Result<ConfigNode> parse_config(std::string_view text, std::string_view name);

}  // namespace gpuwright::fit
