#include "row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "vocabulary.h"

namespace gpuwright::scorer {
namespace {

constexpr std::int64_t kMaxTableBytes = 256 << 20;
// Counts and bytes beyond this are a slip of the writer: an exbibyte of GPU memory does not exist.
constexpr std::int64_t kMaxValue = std::int64_t{1} << 60;

constexpr std::array<std::string_view, 14> kColumns = {
    "id",    "source", "engine",          "engine_version",   "model", "arch", "mode", "settings", "component",
    "where", "meter",  "value_low_bytes", "value_high_bytes", "usable"};

using Columns = std::map<std::string_view, std::size_t>;

Result<Columns> read_header(std::string_view line, const std::string& file) {
  const std::vector<std::string_view> names = split(line, '\t');
  Columns columns;
  for (std::string_view wanted : kColumns) {
    const auto found = std::find(names.begin(), names.end(), wanted);
    if (found == names.end())
      return fail_at(ErrorCode::bad_input, {file, 1, std::nullopt}, fmt::format("there is no column \"{}\"", wanted),
                     "the first line names the columns, tab separated");
    columns[wanted] = static_cast<std::size_t>(found - names.begin());
  }
  return columns;
}

Result<std::int64_t> whole_number(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::bad_input, fmt::format("\"{}\" is {}", printable(text), why));
  };
  const auto number = to_number(text);
  if (!number) return wrong("not a whole number");
  if (std::abs(*number) > static_cast<double>(kMaxValue)) return wrong("larger than anything measured");
  if (const auto integer = to_integer(text)) return *integer;
  if (std::abs(*number - std::round(*number)) > 1e-6 * std::abs(*number)) return wrong("not a whole number");
  return static_cast<std::int64_t>(std::llround(*number));
}

Result<std::optional<std::int64_t>> bound(std::string_view text) {
  if (text.empty()) return std::optional<std::int64_t>{};
  return std::optional<std::int64_t>(GW_TRY(whole_number(text)));
}

Result<Facts> read_facts(std::string_view text, char separator, std::string_view what,
                         const std::vector<std::string>& known) {
  Facts facts;
  for (std::string_view piece : split(text, separator)) {
    piece = trim(piece);
    if (piece.empty()) continue;
    const std::size_t equals = piece.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return fail(ErrorCode::bad_input, fmt::format("{}: \"{}\" is not key=value", what, printable(piece)));
    std::string key(trim(piece.substr(0, equals)));
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const auto near = nearest_name(key, known);
      return fail(ErrorCode::bad_input, fmt::format("{}: unknown key \"{}\"", what, printable(key)),
                  near ? fmt::format("did you mean \"{}\"?", *near) : "");
    }
    if (facts.has(key)) return fail(ErrorCode::bad_input, fmt::format("{}: \"{}\" is given twice", what, key));
    facts.add(std::move(key), std::string(trim(piece.substr(equals + 1))));
  }
  return facts;
}

Status check_word(std::string_view word, const std::vector<std::string>& known, std::string_view what) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return {};
  return fail(ErrorCode::bad_input, fmt::format("unknown {} \"{}\"", what, printable(word)));
}

Status check_where(std::string_view where) {
  const bool numbered =
      where.size() > 3 && where.substr(0, 3) == "gpu" && to_integer(where.substr(3)).value_or(-1) >= 0;
  if (numbered) return {};
  return check_word(where, known_places(), "where");
}

Result<Row> read_row(const std::vector<std::string_view>& fields, const Columns& columns, std::int64_t line) {
  const auto field = [&](std::string_view name) { return trim(fields[columns.at(name)]); };
  Row row;
  row.line = line;
  row.id = field("id");
  row.source = field("source");
  row.engine = field("engine");
  row.engine_version = field("engine_version");
  row.model = field("model");
  row.mode = field("mode");
  row.component = field("component");
  row.where = field("where");
  row.meter = field("meter");
  row.usable = field("usable");
  if (row.id.empty()) return fail(ErrorCode::bad_input, "the id is empty");
  if (!row.marked_usable()) return row;  // Skipped with its own reason; the rest may be anything.

  GW_TRY(check_word(row.mode, known_modes(), "mode"));
  GW_TRY(check_word(row.component, known_components(), "component"));
  GW_TRY(check_where(row.where));
  GW_TRY(check_word(row.meter, known_meters(), "meter"));
  row.arch = GW_TRY(read_facts(field("arch"), ',', "arch", arch_keys()));
  row.settings = GW_TRY(read_facts(field("settings"), ';', "settings", setting_keys()));
  row.measured.low = GW_TRY(bound(field("value_low_bytes")));
  row.measured.high = GW_TRY(bound(field("value_high_bytes")));
  if (!row.measured.low && !row.measured.high) return fail(ErrorCode::bad_input, "the measured interval is empty");
  if (row.measured.low && row.measured.high && *row.measured.low > *row.measured.high)
    return fail(ErrorCode::bad_input, "the measured interval ends before it begins");
  return row;
}

}  // namespace

std::optional<std::string_view> Facts::text(std::string_view key) const {
  for (const auto& [name, value] : pairs_)
    if (name == key) return value;
  return std::nullopt;
}

Result<std::optional<double>> Facts::number(std::string_view key) const {
  const auto value = text(key);
  if (!value) return std::optional<double>{};
  const auto number = to_number(*value);
  if (!number) return fail(ErrorCode::bad_input, fmt::format("{}: \"{}\" is not a number", key, printable(*value)));
  return std::optional<double>(*number);
}

Result<std::optional<std::int64_t>> Facts::integer(std::string_view key) const {
  const auto value = text(key);
  if (!value) return std::optional<std::int64_t>{};
  const auto number = whole_number(*value);
  if (!number || *number < 0)
    return fail(ErrorCode::bad_input,
                fmt::format("{}: \"{}\" is not a whole number of 0 or more", key, printable(*value)));
  return std::optional<std::int64_t>(*number);
}

Result<std::optional<bool>> Facts::flag(std::string_view key) const {
  const auto value = text(key);
  if (!value) return std::optional<bool>{};
  if (*value != "0" && *value != "1")
    return fail(ErrorCode::bad_input, fmt::format("{}: \"{}\" is neither 0 nor 1", key, printable(*value)));
  return std::optional<bool>(*value == "1");
}

Result<Interval> parse_range(std::string_view text) {
  const std::size_t dash = text.find('-', 1);
  if (dash == std::string_view::npos) {
    const std::int64_t value = GW_TRY(whole_number(text));
    return Interval{value, value};
  }
  const std::int64_t low = GW_TRY(whole_number(text.substr(0, dash)));
  const std::int64_t high = GW_TRY(whole_number(text.substr(dash + 1)));
  if (low > high)
    return fail(ErrorCode::bad_input, fmt::format("the range \"{}\" ends before it begins", printable(text)));
  return Interval{low, high};
}

Result<Table> read_table(const ByteSource& source) {
  const std::string text = GW_TRY(read_whole(source, kMaxTableBytes));
  Table table;
  Columns columns;
  std::set<std::string> seen;
  std::int64_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (number == 1) {
      columns = GW_TRY(read_header(line, source.name()));
      continue;
    }
    if (trim(line).empty()) continue;
    const std::vector<std::string_view> fields = split(line, '\t');
    std::string id(trim(fields[columns["id"] < fields.size() ? columns["id"] : 0]));
    if (id.empty()) id = fmt::format("line {}", number);
    const auto refuse = [&](std::string reason) { table.refusals.push_back({id, std::move(reason)}); };
    const auto last = std::max_element(columns.begin(), columns.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (fields.size() <= last->second) {
      refuse(fmt::format("line {} has {} fields, the header names more", number, fields.size()));
      continue;
    }
    if (!seen.insert(id).second) {
      refuse(fmt::format("line {}: the id is used twice", number));
      continue;
    }
    if (auto row = read_row(fields, columns, number))
      table.rows.push_back(std::move(*row));
    else
      refuse(row.error().message());
  }
  if (number == 0 || columns.empty()) return fail(ErrorCode::bad_input, source.name() + ": the table is empty");
  return table;
}

}  // namespace gpuwright::scorer
