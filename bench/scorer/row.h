// A line of a table of published memory measurements, checked but not yet understood.
//
// The table is tab separated with one header line that names the columns (any order; `note` is never looked at):
//   id source engine engine_version model arch mode settings component where meter value_low_bytes value_high_bytes
//   unit_note grade usable
// `arch` is key=value joined by commas, `settings` key=value joined by semicolons, both from closed vocabularies.
// A line that does not follow this becomes a Refusal, never a crash and never a silent gap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace gpuwright::scorer {

// key=value pairs in the order of the line.
class Facts {
 public:
  void add(std::string key, std::string value) { pairs_.emplace_back(std::move(key), std::move(value)); }
  std::optional<std::string_view> text(std::string_view key) const;
  bool has(std::string_view key) const { return text(key).has_value(); }
  // Absent is an empty optional; present but not such a value is an error that names the key.
  Result<std::optional<std::int64_t>> integer(std::string_view key) const;  // "2048", "46.70e9"
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> flag(std::string_view key) const;  // "0", "1"
  const std::vector<std::pair<std::string, std::string>>& pairs() const { return pairs_; }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

// Bytes or plain counts. Either end may be open (an out-of-memory report gives only a lower bound).
struct Interval {
  std::optional<std::int64_t> low, high;
};
// "8194621440-8194621440" as printed by the settings gpu_mem, free_mem and kv_budget.
Result<Interval> parse_range(std::string_view text);

struct Row {
  std::int64_t line = 0;
  std::string id, source, engine, engine_version, model, mode, component, where, meter, usable;
  Facts arch, settings;
  Interval measured;

  bool marked_usable() const { return usable == "yes"; }
};

struct Refusal {
  std::string id;  // "line 12" when the line has none
  std::string reason;
};

struct Table {
  std::vector<Row> rows;
  std::vector<Refusal> refusals;
};

// bad_input when there is no header with the needed columns; unreadable lines are in Table::refusals.
Result<Table> read_table(const ByteSource& source);

}  // namespace gpuwright::scorer
