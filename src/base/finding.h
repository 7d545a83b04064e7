// The noun that doctor, explain and alerts share: something that was found, what shows it, and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwright {

// What has to change: the card, its driver, the user's software, the machine, the cluster, or nothing.
enum class Scope : std::uint8_t { none, gpu, driver, software, host, cluster };
enum class Severity : std::uint8_t { benign, info, warning, fatal };
enum class Role : std::uint8_t { cause, consequence };

std::string_view to_string(Scope scope);
std::string_view to_string(Severity severity);
std::optional<Scope> scope_named(std::string_view name);
std::optional<Severity> severity_named(std::string_view name);

// Where it was seen. line counts from 1; 0 where the source has no lines.
struct Evidence {
  std::string source;
  std::int64_t line = 0;
  std::string text;
  std::int64_t count = 1;  // how often it was seen; source, line and text are the first time's
};

// A value taken from the text or computed from such values.
struct FactValue {
  std::string name;                // "tried_bytes": the unit is in the name
  std::vector<std::string> items;  // one; several for facts that are lists
  bool number = false;             // JSON prints the items as numbers
  bool list = false;
};

struct Fix {
  std::string text;
  std::vector<std::string> commands;  // to be typed as they are
  bool reboot = false;
  bool safe = false;  // changes nothing that cannot be undone
  std::string url;
};

struct Finding {
  std::string id;    // the rule that found it
  std::string kind;  // "oom.vram"
  Scope scope = Scope::none;
  Severity severity = Severity::info;
  Role role = Role::cause;
  double confidence = 1;  // 0..1
  std::string title;      // one line
  std::string cause;      // what happened and why, for people
  std::vector<Evidence> evidence;
  std::vector<FactValue> facts;
  std::vector<Fix> fixes;
};

}  // namespace gpuwright
