// Conditions on accelerators. The grammar, words in any case:
//   or   := and { ("or" | "||") and }        and := unary { ("and" | "&&") unary }
//   unary := ("not" | "!") unary | "(" or ")" | field [operator value]
// Truth has three values: a comparison with an unknown value is unknown, "not" keeps it so, and only what is certainly
// true matches.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "catalog/catalog.h"
#include "catalog/fields.h"

namespace gpuwright::catalog {
namespace {

enum class Operator { equal, not_equal, less, less_equal, greater, greater_equal, contains };

constexpr std::size_t kMaxLength = 4096;
constexpr int kMaxDepth = 64;

}  // namespace

struct Filter::Node {
  enum class Kind { all, any, negation, comparison } kind = Kind::comparison;
  std::vector<std::unique_ptr<Node>> children;
  const Field* field = nullptr;
  Operator op = Operator::equal;
  FieldValue value;

  std::optional<bool> holds(const Accelerator& gpu) const;
  std::optional<bool> compare(const Accelerator& gpu) const;
  std::optional<bool> combine(const Accelerator& gpu) const;
};

namespace {

template <class T>
bool ordered(const T& left, Operator op, const T& right) {
  switch (op) {
    case Operator::equal:
      return left == right;
    case Operator::not_equal:
      return left != right;
    case Operator::less:
      return left < right;
    case Operator::less_equal:
      return left <= right;
    case Operator::greater:
      return left > right;
    case Operator::greater_equal:
      return left >= right;
    case Operator::contains:
      break;
  }
  return false;
}

// The whole text, or one whole word of it.
bool is_word_of(std::string_view word, std::string_view text) {
  if (word == text) return true;
  for (const std::string_view part : split(text, ' '))
    if (part == word) return true;
  return false;
}

bool text_holds(const std::string& own, Operator op, const std::string& wanted) {
  const std::string left = lower(own), right = lower(wanted);
  if (op == Operator::contains) return left.find(right) != std::string::npos;
  return is_word_of(right, left) == (op == Operator::equal);
}

}  // namespace

std::optional<bool> Filter::Node::compare(const Accelerator& gpu) const {
  const FieldValue own = field->value(gpu);
  if (std::holds_alternative<std::monostate>(own)) return std::nullopt;
  if (const auto* range = std::get_if<std::pair<Version, Version>>(&own)) {
    const Version& wanted = std::get<Version>(value);
    return (range->first <= wanted && wanted <= range->second) == (op == Operator::equal);
  }
  if (own.index() != value.index()) {  // gfx942 against 8.9
    if (op == Operator::equal || op == Operator::not_equal) return op == Operator::not_equal;
    return std::nullopt;
  }
  if (const auto* text = std::get_if<std::string>(&own)) return text_holds(*text, op, std::get<std::string>(value));
  if (const auto* number = std::get_if<double>(&own)) return ordered(*number, op, std::get<double>(value));
  if (const auto* version = std::get_if<Version>(&own)) return ordered(*version, op, std::get<Version>(value));
  return ordered(std::get<bool>(own), op, std::get<bool>(value));
}

std::optional<bool> Filter::Node::combine(const Accelerator& gpu) const {
  const bool decisive = kind == Kind::any;  // one true decides "or", one false decides "and"
  bool unsure = false;
  for (const auto& child : children) {
    const auto holds_here = child->holds(gpu);
    if (holds_here == decisive) return decisive;
    unsure = unsure || !holds_here;
  }
  return unsure ? std::nullopt : std::optional(!decisive);
}

std::optional<bool> Filter::Node::holds(const Accelerator& gpu) const {
  if (kind == Kind::comparison) return compare(gpu);
  if (kind != Kind::negation) return combine(gpu);
  const auto inner = children.front()->holds(gpu);
  return inner ? std::optional(!*inner) : std::nullopt;
}

// Recursive descent over the text; position_ is where the next token begins.
class FilterParser {
 public:
  using Node = Filter::Node;
  using Parsed = Result<std::unique_ptr<Node>>;

  explicit FilterParser(std::string_view text) : text_(text) {}

  Parsed parse() {
    auto root = GW_TRY(any(0));
    skip_spaces();
    if (position_ < text_.size()) return wrong("the condition should end here, or go on with and / or");
    return root;
  }

 private:
  tl::unexpected<Error> wrong(std::string what, std::string hint = {}) const {
    return fail(ErrorCode::bad_input, fmt::format("filter, character {}: {}", position_ + 1, what), std::move(hint));
  }

  void skip_spaces() {
    while (position_ < text_.size() &&
           (text_[position_] == ' ' || text_[position_] == '\t' || text_[position_] == '\n'))
      ++position_;
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }
  static bool in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  // A word that stands alone: "and", but not the beginning of "android".
  bool take_word(std::string_view word) {
    skip_spaces();
    const std::string_view rest = text_.substr(position_);
    if (!starts_with_ignoring_case(rest, word) || (rest.size() > word.size() && in_word(rest[word.size()])))
      return false;
    position_ += word.size();
    return true;
  }

  static std::unique_ptr<Node> node(Node::Kind kind, std::unique_ptr<Node> child) {
    auto result = std::make_unique<Node>();
    result->kind = kind;
    result->children.push_back(std::move(child));
    return result;
  }

  Parsed any(int depth) {
    auto result = node(Node::Kind::any, GW_TRY(all(depth)));
    while (take_word("or") || take("||")) result->children.push_back(GW_TRY(all(depth)));
    return result;
  }
  Parsed all(int depth) {
    auto result = node(Node::Kind::all, GW_TRY(unary(depth)));
    while (take_word("and") || take("&&")) result->children.push_back(GW_TRY(unary(depth)));
    return result;
  }
  Parsed unary(int depth) {
    if (depth > kMaxDepth) return wrong("nested too deeply");
    if (take_word("not") || take("!")) return node(Node::Kind::negation, GW_TRY(unary(depth + 1)));
    if (!take("(")) return comparison();
    auto inner = GW_TRY(any(depth + 1));
    if (!take(")")) return wrong("a closing parenthesis is missing");
    return inner;
  }

  std::string_view word() {
    skip_spaces();
    const std::size_t begin = position_;
    while (position_ < text_.size() && in_word(text_[position_])) ++position_;
    return text_.substr(begin, position_ - begin);
  }

  Parsed comparison() {
    const std::string_view name = word();
    if (name.empty()) return wrong("a field is needed here", "such as vram>=24 or arch=ada");
    auto result = std::make_unique<Node>();
    result->field = field_named(name);
    if (result->field == nullptr) return no_such_field(name);
    const auto op = take_operator();
    if (!op) {
      if (result->field->kind != FieldKind::flag)
        return wrong(fmt::format("{} needs an operator and a value", name), "operators are >= <= > < = != ~");
      result->value = true;
      return result;
    }
    result->op = *op;
    GW_TRY(check_operator(*result->field, *op));
    result->value = GW_TRY(value_for(*result->field));
    return result;
  }

  std::optional<Operator> take_operator() {
    static constexpr std::pair<std::string_view, Operator> kOperators[] = {
        {">=", Operator::greater_equal}, {"<=", Operator::less_equal}, {"!=", Operator::not_equal},
        {"==", Operator::equal},         {">", Operator::greater},     {"<", Operator::less},
        {"=", Operator::equal},          {"~", Operator::contains},
    };
    for (const auto& [token, op] : kOperators)
      if (take(token)) return op;
    return std::nullopt;
  }

  Status check_operator(const Field& field, Operator op) const {
    const bool equality = op == Operator::equal || op == Operator::not_equal;
    if (field.kind == FieldKind::text && !equality && op != Operator::contains)
      return wrong(fmt::format("{} is text: it can be compared with =, != and ~", field.name));
    if (field.kind != FieldKind::text && op == Operator::contains)
      return wrong(fmt::format("{} is no text: ~ cannot be used with it", field.name));
    if ((field.kind == FieldKind::flag || field.kind == FieldKind::toolkit) && !equality)
      return wrong(fmt::format("{} can only be compared with = and !=", field.name));
    return {};
  }

  // Up to a space, a parenthesis or the end; or in quotes.
  Result<std::string> raw_value() {
    skip_spaces();
    if (position_ < text_.size() && (text_[position_] == '"' || text_[position_] == '\'')) {
      const auto end = text_.find(text_[position_], position_ + 1);
      if (end == std::string_view::npos) return wrong("the quote is not closed");
      const std::string value(text_.substr(position_ + 1, end - position_ - 1));
      position_ = end + 1;
      return value;
    }
    const std::size_t begin = position_;
    while (position_ < text_.size() && std::string_view(" \t\n()&|").find(text_[position_]) == std::string_view::npos)
      ++position_;
    if (position_ == begin) return wrong("a value is needed here");
    return std::string(text_.substr(begin, position_ - begin));
  }

  Result<FieldValue> value_for(const Field& field) {
    const std::size_t begin = position_;
    const std::string raw = GW_TRY(raw_value());
    switch (field.kind) {
      case FieldKind::text:
        return FieldValue{raw};
      case FieldKind::number:
        return number(field, raw);
      case FieldKind::flag:
        return flag(field, raw);
      case FieldKind::version:
      case FieldKind::toolkit:
        break;
    }
    if (const auto version = parse_version(raw)) return FieldValue{*version};
    if (field.kind == FieldKind::version) return FieldValue{lower(raw)};
    position_ = begin;
    return wrong(fmt::format("\"{}\" is no version", raw), "such as 12.8");
  }

  Result<FieldValue> flag(const Field& field, const std::string& raw) const {
    const std::string text = lower(raw);
    if (text == "yes" || text == "true" || text == "1") return FieldValue{true};
    if (text == "no" || text == "false" || text == "0") return FieldValue{false};
    return wrong(fmt::format("{} is yes or no, not \"{}\"", field.name, raw));
  }

  // "24", "24GiB", "24 GiB", "$1500".
  Result<FieldValue> number(const Field& field, std::string_view raw) {
    if (field.unit == FieldUnit::money && raw.starts_with('$')) raw.remove_prefix(1);
    const auto digits = std::min(raw.find_first_not_of("0123456789.+-"), raw.size());
    const auto value = to_number(raw.substr(0, digits));
    if (!value) return wrong(fmt::format("\"{}\" is no number", raw), fmt::format("{} is {}", field.name, field.help));
    std::string_view unit = raw.substr(digits);
    if (unit.empty()) unit = following_unit(field);
    const auto factor = unit_factor(field.unit, unit);
    if (!factor) return wrong(fmt::format("\"{}\" is no unit of {}", unit, field.name), std::string(field.help));
    return FieldValue{*value * *factor};
  }

  std::string_view following_unit(const Field& field) {
    const std::size_t before = position_;
    skip_spaces();
    const std::size_t begin = position_;
    while (position_ < text_.size() && (in_word(text_[position_]) || text_[position_] == '/')) ++position_;
    const std::string_view unit = text_.substr(begin, position_ - begin);
    if (!unit.empty() && unit_factor(field.unit, unit)) return unit;
    position_ = before;
    return {};
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

Result<Filter> Filter::parse(std::string_view text) {
  if (text.size() > kMaxLength) return fail(ErrorCode::bad_input, "the filter is too long");
  return Filter(GW_TRY(FilterParser(text).parse()));
}

bool Filter::matches(const Accelerator& accelerator) const {
  return root_->holds(accelerator).value_or(false);
}

Filter::Filter(std::unique_ptr<Node> root) : root_(std::move(root)) {}
Filter::~Filter() = default;
Filter::Filter(Filter&&) noexcept = default;
Filter& Filter::operator=(Filter&&) noexcept = default;

}  // namespace gpuwright::catalog
