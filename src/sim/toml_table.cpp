#include "sim/toml_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace gpuwright::sim {
namespace {

constexpr std::size_t kMaxText = 4096;
constexpr std::size_t kMaxList = 4096;
constexpr Range kSeconds{0, 1e9};
constexpr Range kPeriod{0.001, 1e9};

}  // namespace

Result<toml::table> parse_toml(std::string_view text, std::string_view origin) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    return fail_at(ErrorCode::bad_input, {std::string(origin), error.source().begin.line, {}},
                   std::string(error.description()));
  }
}

TomlTable::TomlTable(const toml::table& table, std::string_view origin, std::string kind)
    : table_(table), origin_(origin), kind_(std::move(kind)) {}

const toml::node* TomlTable::get(std::string_view key) {
  asked_.emplace(key);
  return table_.get(key);
}

tl::unexpected<Error> TomlTable::wrong_at(const toml::node& node, std::string what, std::string hint) const {
  Location where{std::string(origin_), {}, {}};
  if (node.source().begin.line > 0) where.line = node.source().begin.line;
  return fail_at(ErrorCode::bad_input, std::move(where), std::move(what), std::move(hint));
}

tl::unexpected<Error> TomlTable::wrong(std::string_view key, std::string what, std::string hint) const {
  const toml::node* node = table_.get(key);
  return wrong_at(node != nullptr ? *node : table_, fmt::format("{}: {}", key, what), std::move(hint));
}

tl::unexpected<Error> TomlTable::refuse(std::string what, std::string hint) const {
  return wrong_at(table_, std::move(what), std::move(hint));
}

Result<std::string> TomlTable::text_of(const toml::node& node) const {
  const auto text = node.value_exact<std::string>();
  if (!text) return wrong_at(node, "a text in quotes is needed here", {});
  if (text->size() > kMaxText) return wrong_at(node, fmt::format("a text of more than {} bytes", kMaxText), {});
  return *text;
}

Result<double> TomlTable::number_of(const toml::node& node, Range range) const {
  const auto number = node.is_number() ? node.value<double>() : std::nullopt;
  if (!number || !std::isfinite(*number) || *number < range.low || *number > range.high)
    return wrong_at(node, fmt::format("a number from {} to {} is needed here", range.low, range.high), {});
  return *number;
}

Result<std::int64_t> TomlTable::integer_of(const toml::node& node, Range range) const {
  const auto whole = node.value_exact<std::int64_t>();
  if (!whole || static_cast<double>(*whole) < range.low || static_cast<double>(*whole) > range.high)
    return wrong_at(node, fmt::format("a whole number from {:.0f} to {:.0f} is needed here", range.low, range.high),
                    {});
  return *whole;
}

Result<std::optional<std::string>> TomlTable::text(std::string_view key) {
  const toml::node* node = get(key);
  if (node == nullptr) return std::nullopt;
  return GW_TRY(text_of(*node));
}

Result<std::optional<double>> TomlTable::number(std::string_view key, Range range) {
  const toml::node* node = get(key);
  if (node == nullptr) return std::nullopt;
  return GW_TRY(number_of(*node, range));
}

Result<std::optional<std::int64_t>> TomlTable::integer(std::string_view key, Range range) {
  const toml::node* node = get(key);
  if (node == nullptr) return std::nullopt;
  return GW_TRY(integer_of(*node, range));
}

Result<std::optional<bool>> TomlTable::flag(std::string_view key) {
  const toml::node* node = get(key);
  if (node == nullptr) return std::nullopt;
  const auto truth = node->value_exact<bool>();
  if (!truth) return wrong_at(*node, "true or false is needed here", {});
  return *truth;
}

Result<std::vector<std::string>> TomlTable::texts(std::string_view key) {
  const toml::node* node = get(key);
  std::vector<std::string> values;
  if (node == nullptr) return values;
  const toml::array* list = node->as_array();
  if (list == nullptr) {
    values.push_back(GW_TRY(text_of(*node)));
    return values;
  }
  if (list->size() > kMaxList) return wrong_at(*node, fmt::format("a list of more than {}", kMaxList), {});
  for (const toml::node& item : *list) values.push_back(GW_TRY(text_of(item)));
  return values;
}

Result<std::vector<std::int64_t>> TomlTable::integers(std::string_view key, Range range) {
  const toml::node* node = get(key);
  std::vector<std::int64_t> values;
  if (node == nullptr) return values;
  const toml::array* list = node->as_array();
  if (list == nullptr) {
    values.push_back(GW_TRY(integer_of(*node, range)));
    return values;
  }
  if (list->size() > kMaxList) return wrong_at(*node, fmt::format("a list of more than {}", kMaxList), {});
  for (const toml::node& item : *list) values.push_back(GW_TRY(integer_of(item, range)));
  return values;
}

Result<std::optional<Curve>> TomlTable::curve(std::string_view key, Range range) {
  const toml::node* node = get(key);
  if (node == nullptr) return std::nullopt;
  if (const toml::table* table = node->as_table()) return GW_TRY(curve_of(*table, range));
  return Curve::constant(GW_TRY(number_of(*node, range)));
}

Result<Curve> TomlTable::curve_of(const toml::table& table, Range range) {
  TomlTable reader(table, origin_, "a curve");
  const int kind = GW_TRY(reader.word("kind", {"points", "sine", "ramp", "step"}, 0));
  const auto period = GW_TRY(reader.number("period", kPeriod));
  const double phase = GW_TRY(reader.number("phase", kSeconds)).value_or(0);
  const double low = GW_TRY(reader.number("low", range)).value_or(range.low);
  const double high = GW_TRY(reader.number("high", range)).value_or(low);
  const double share = GW_TRY(reader.number("high_share", {0, 1})).value_or(0.5);
  const double seconds = GW_TRY(reader.number("seconds", kPeriod)).value_or(60);
  const toml::node* points = reader.get("points");
  GW_TRY(reader.finish());
  if ((kind == 0) != (points != nullptr))
    return reader.refuse("a curve has points or a kind", "{kind = \"sine\", low = 0.2, high = 0.9, period = 60}");
  const double turn = period.value_or(60);
  switch (kind) {
    case 1:
      return Curve::sine(low, high, turn, phase);
    case 2:
      return Curve::through({{0, low}, {period ? turn : seconds, high}}, period ? turn : 0).shifted(-phase);
    case 3:
      return Curve::through({{0, high}, {turn * share, high}, {turn * share, low}, {turn, low}}, turn).shifted(-phase);
    default:
      return GW_TRY(reader.points_of(*points, range, period.value_or(0))).shifted(-phase);
  }
}

Result<Curve> TomlTable::points_of(const toml::node& node, Range range, double period) const {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty() || list->size() > kMaxList)
    return wrong_at(node, fmt::format("a list of 1 to {} points [seconds, value] is needed here", kMaxList), {});
  std::vector<Curve::Point> points;
  for (const toml::node& item : *list) {
    const toml::array* pair = item.as_array();
    if (pair == nullptr || pair->size() != 2) return wrong_at(item, "a point is written [seconds, value]", {});
    const Curve::Point point{GW_TRY(number_of(*pair->get(0), kSeconds)), GW_TRY(number_of(*pair->get(1), range))};
    if (!points.empty() && point.seconds < points.back().seconds)
      return wrong_at(item, "the times of points must not decrease", {});
    points.push_back(point);
  }
  if (period > 0 && period < points.back().seconds)
    return wrong_at(node, "the period ends before the last point", "make it at least as long");
  return Curve::through(std::move(points), period);
}

Status TomlTable::tables(std::string_view key, const std::string& kind,
                         const std::function<Status(TomlTable&)>& visit) {
  const toml::node* node = get(key);
  if (node == nullptr) return {};
  const toml::array* list = node->as_array();
  if (list == nullptr) return wrong_at(*node, fmt::format("write [[{}]]", key), {});
  if (list->size() > kMaxList) return wrong_at(*node, fmt::format("more than {} [[{}]]", kMaxList, key), {});
  for (const toml::node& item : *list) {
    const toml::table* table = item.as_table();
    if (table == nullptr) return wrong_at(item, fmt::format("write [[{}]]", key), {});
    TomlTable reader(*table, origin_, kind);
    GW_TRY(visit(reader));
    GW_TRY(reader.finish());
  }
  return {};
}

Status TomlTable::table(std::string_view key, const std::string& kind, const std::function<Status(TomlTable&)>& visit) {
  const toml::node* node = get(key);
  if (node == nullptr) return {};
  const toml::table* table = node->as_table();
  if (table == nullptr) return wrong_at(*node, fmt::format("write [{}]", key), {});
  TomlTable reader(*table, origin_, kind);
  GW_TRY(visit(reader));
  return reader.finish();
}

Result<int> TomlTable::word(std::string_view key, const std::vector<std::string>& words, int otherwise) {
  const auto text = GW_TRY(this->text(key));
  if (!text) return otherwise;
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found != words.end()) return static_cast<int>(found - words.begin());
  return wrong(key, fmt::format("\"{}\" is not one of {}", *text, fmt::join(words, ", ")));
}

Status TomlTable::finish() {
  for (const auto& [key, value] : table_) {
    if (asked_.count(key.str()) != 0) continue;
    const auto near = nearest_name(key.str(), {asked_.begin(), asked_.end()});
    return wrong_at(value, fmt::format("{} has no key \"{}\"", kind_, key.str()),
                    near ? fmt::format("did you mean {}?", *near) : "");
  }
  return {};
}

}  // namespace gpuwright::sim
