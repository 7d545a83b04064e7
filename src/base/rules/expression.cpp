#include "base/rules/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "base/text.h"

namespace gpuwright {

enum class Operator : std::uint8_t {
  constant,
  name,
  call,
  either,
  both,
  negation,
  equal,
  different,
  less,
  less_equal,
  greater,
  greater_equal,
  contains,
  plus,
  minus,
  times,
  divided,
};

struct Expression::Node {
  Operator op = Operator::constant;
  Value value = {};
  std::string name = {};  // of a name or a function
  std::vector<std::unique_ptr<Node>> parts = {};
};

namespace {

using Node = Expression::Node;
using NodePtr = std::unique_ptr<Node>;

constexpr int kDeepest = 32;
constexpr std::array<std::string_view, 4> kLookups = {"capability", "driver_for", "torch_tag_for", "first_torch_for"};
constexpr std::array<std::string_view, 12> kFunctions = {"max",       "min",       "count",     "distinct",
                                                         "product",   "line",      "times",     "found",
                                                         kLookups[0], kLookups[1], kLookups[2], kLookups[3]};

class Parser {
 public:
  Parser(std::string_view text, std::set<std::string>& names) : text_(text), names_(names) {}

  Result<NodePtr> whole() {
    NodePtr node = GW_TRY(either(0));
    skip_space();
    if (at_ < text_.size()) return wrong("an operator or the end");
    return node;
  }

 private:
  tl::unexpected<Error> wrong(std::string_view expected) const {
    return fail(ErrorCode::bad_input,
                fmt::format("\"{}\", character {}: expected {}", printable(text_), at_ + 1, expected));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    const std::size_t end = at_ + token.size();
    if (is_word(token.back()) && end < text_.size() && is_word(text_[end])) return false;
    at_ = end;
    return true;
  }
  static NodePtr make(Operator op, NodePtr left, NodePtr right) {
    auto node = std::make_unique<Node>();
    node->op = op;
    node->parts.push_back(std::move(left));
    if (right) node->parts.push_back(std::move(right));
    return node;
  }

  Result<NodePtr> either(int depth) {
    if (depth > kDeepest) return wrong("fewer parentheses");
    NodePtr left = GW_TRY(both(depth));
    while (take("or")) {
      NodePtr right = GW_TRY(both(depth));
      left = make(Operator::either, std::move(left), std::move(right));
    }
    return left;
  }
  Result<NodePtr> both(int depth) {
    NodePtr left = GW_TRY(negation(depth));
    while (take("and")) {
      NodePtr right = GW_TRY(negation(depth));
      left = make(Operator::both, std::move(left), std::move(right));
    }
    return left;
  }
  Result<NodePtr> negation(int depth) {
    if (depth > kDeepest) return wrong("fewer parts");
    if (!take("not")) return comparison(depth);
    NodePtr inner = GW_TRY(negation(depth + 1));
    return make(Operator::negation, std::move(inner), nullptr);
  }
  Result<NodePtr> comparison(int depth) {
    NodePtr left = GW_TRY(sum(depth));
    struct Sign {
      std::string_view text;
      Operator op;
    };
    static constexpr std::array<Sign, 7> kSigns = {{{"!=", Operator::different},
                                                    {"<=", Operator::less_equal},
                                                    {">=", Operator::greater_equal},
                                                    {"=", Operator::equal},
                                                    {"<", Operator::less},
                                                    {">", Operator::greater},
                                                    {"~", Operator::contains}}};
    for (const Sign& sign : kSigns) {
      if (!take(sign.text)) continue;
      NodePtr right = GW_TRY(sum(depth));
      return make(sign.op, std::move(left), std::move(right));
    }
    return left;
  }
  Result<NodePtr> sum(int depth) {
    NodePtr left = GW_TRY(product(depth));
    while (true) {
      const Operator op = take("+") ? Operator::plus : take("-") ? Operator::minus : Operator::constant;
      if (op == Operator::constant) return left;
      NodePtr right = GW_TRY(product(depth));
      left = make(op, std::move(left), std::move(right));
    }
  }
  Result<NodePtr> product(int depth) {
    NodePtr left = GW_TRY(atom(depth));
    while (true) {
      const Operator op = take("*") ? Operator::times : take("/") ? Operator::divided : Operator::constant;
      if (op == Operator::constant) return left;
      NodePtr right = GW_TRY(atom(depth));
      left = make(op, std::move(left), std::move(right));
    }
  }
  Result<NodePtr> atom(int depth) {
    if (take("(")) {
      NodePtr inner = GW_TRY(either(depth + 1));
      if (!take(")")) return wrong("')'");
      return inner;
    }
    skip_space();
    if (at_ >= text_.size()) return wrong("a name or a number");
    const char c = text_[at_];
    if (c == '\'') return quoted();
    if (c >= '0' && c <= '9') return number();
    if (!is_word(c)) return wrong("a name or a number");
    const std::string word(take_word());
    if (!take("(")) {
      names_.insert(word);
      auto node = std::make_unique<Node>();
      node->op = Operator::name;
      node->name = word;
      return node;
    }
    if (std::find(kFunctions.begin(), kFunctions.end(), word) == kFunctions.end())
      return wrong(fmt::format("one of the functions {}", fmt::join(kFunctions, ", ")));
    NodePtr argument = GW_TRY(either(depth + 1));
    if (!take(")")) return wrong("')'");
    NodePtr node = make(Operator::call, std::move(argument), nullptr);
    node->name = word;
    return node;
  }
  std::string_view take_word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  static NodePtr constant(Value value) {
    auto node = std::make_unique<Node>();
    node->value = std::move(value);
    return node;
  }
  Result<NodePtr> quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return wrong("a closing quote");
    NodePtr node = constant(std::string(text_.substr(at_ + 1, end - at_ - 1)));
    at_ = end + 1;
    return node;
  }
  Result<NodePtr> number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.') &&
           !(text_[at_] >= 'A' && text_[at_] <= 'Z'))
      ++at_;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    const auto value = to_number(digits);
    // "11.4.1" is no number but a version.
    if (!value) return constant(Version{std::string(digits)});
    struct Unit {
      std::string_view name;
      double factor;
    };
    static constexpr std::array<Unit, 5> kUnits = {
        {{"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"%", 0.01}, {"s", 1.0}}};
    for (const Unit& unit : kUnits)
      if (take(unit.name)) return constant(*value * unit.factor);
    return constant(*value);
  }

  std::string_view text_;
  std::set<std::string>& names_;
  std::size_t at_ = 0;
};

bool is_version(FactType type) {
  return type == FactType::version || type == FactType::cuda || type == FactType::cudnn || type == FactType::capability;
}

Value value_of(const Fact& fact, const std::string& item) {
  if (is_version(fact.kind->type)) return Version{item};
  if (is_number(fact.kind->type)) return to_number(item).value_or(0);
  return item;
}

Value value_of_name(const Scene& scene, const std::string& name) {
  if (const Fact* fact = scene.facts->find(name)) return value_of(*fact, fact->items.front());
  if (scene.first_line && scene.first_line(name) > 0) return true;
  return {};
}

bool truth(const Value& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  return !std::holds_alternative<std::monostate>(value);
}

std::optional<double> as_number(const Value& value) {
  if (const double* number = std::get_if<double>(&value)) return *number;
  if (const std::string* text = std::get_if<std::string>(&value)) return to_number(*text);
  return std::nullopt;
}

std::string as_text(const Value& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  if (const Version* version = std::get_if<Version>(&value)) return version->text;
  if (const double* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  return {};
}

// -1, 0 or 1; nothing when the two cannot be compared.
std::optional<int> compare(const Value& left, const Value& right) {
  if (std::holds_alternative<std::monostate>(left) || std::holds_alternative<std::monostate>(right))
    return std::nullopt;
  if (std::holds_alternative<Version>(left) || std::holds_alternative<Version>(right))
    return compare_versions(as_text(left), as_text(right));
  const auto a = as_number(left), b = as_number(right);
  if (a && b) return *a < *b ? -1 : *a > *b ? 1 : 0;
  const int order = lower(as_text(left)).compare(lower(as_text(right)));
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

Value arithmetic(Operator op, const Value& left, const Value& right) {
  const auto a = as_number(left), b = as_number(right);
  if (!a || !b) return {};
  switch (op) {
    case Operator::plus:
      return *a + *b;
    case Operator::minus:
      return *a - *b;
    case Operator::times:
      return *a * *b;
    default:
      break;
  }
  if (*b == 0) return {};
  return *a / *b;
}

Value over_list(std::string_view function, const Fact* fact) {
  if (fact == nullptr) return {};
  if (function == "count") return static_cast<double>(fact->items.size());
  if (function == "distinct")
    return static_cast<double>(std::set<std::string>(fact->items.begin(), fact->items.end()).size());
  Value best = value_of(*fact, fact->items.front());
  if (function == "product") {
    double product = 1;
    for (const std::string& item : fact->items) product *= to_number(item).value_or(NAN);
    if (!std::isfinite(product)) return {};
    return product;
  }
  for (const std::string& item : fact->items) {
    Value value = value_of(*fact, item);
    const auto order = compare(value, best);
    if (order && (function == "max" ? *order > 0 : *order < 0)) best = std::move(value);
  }
  return best;
}

Value evaluate_node(const Node& node, const Scene& scene);

Value evaluate_call(const Node& node, const Scene& scene) {
  const Node& argument = *node.parts.front();
  if (node.name == "line" || node.name == "times") {
    const auto& ask = node.name == "line" ? scene.first_line : scene.times;
    const std::int64_t count = ask ? ask(argument.name) : 0;
    if (count == 0) return {};
    return static_cast<double>(count);
  }
  if (node.name == "found") return scene.found && scene.found(as_text(argument.value));
  if (std::find(kLookups.begin(), kLookups.end(), node.name) != kLookups.end()) {
    const std::string of = as_text(evaluate_node(argument, scene));
    const auto answer = of.empty() || !scene.lookup ? std::nullopt : scene.lookup(node.name, of);
    if (!answer) return {};
    return Version{*answer};
  }
  return over_list(node.name, scene.facts->find(argument.name));
}

Value evaluate_node(const Node& node, const Scene& scene) {
  const auto part = [&](std::size_t i) { return evaluate_node(*node.parts[i], scene); };
  const auto order = [&] { return compare(part(0), part(1)); };
  switch (node.op) {
    case Operator::constant:
      return node.value;
    case Operator::name:
      return value_of_name(scene, node.name);
    case Operator::call:
      return evaluate_call(node, scene);
    case Operator::either:
      return truth(part(0)) || truth(part(1));
    case Operator::both:
      return truth(part(0)) && truth(part(1));
    case Operator::negation:
      return !truth(part(0));
    case Operator::equal:
      return order() == 0;
    case Operator::different:
      return order().value_or(0) != 0;
    case Operator::less:
      return order().value_or(0) < 0;
    case Operator::greater:
      return order().value_or(0) > 0;
    case Operator::less_equal:
      return order().value_or(1) <= 0;
    case Operator::greater_equal:
      return order().value_or(-1) >= 0;
    case Operator::contains: {
      const std::string whole = lower(as_text(part(0)));
      return !whole.empty() && whole.find(lower(as_text(part(1)))) != std::string::npos;
    }
    case Operator::plus:
    case Operator::minus:
    case Operator::times:
    case Operator::divided:
      return arithmetic(node.op, part(0), part(1));
  }
  return {};
}

}  // namespace

Expression::Expression() = default;
Expression::~Expression() = default;
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;

Result<Expression> Expression::parse(std::string_view text) {
  Expression expression;
  if (trim(text).empty()) return expression;
  expression.root_ = GW_TRY(Parser(text, expression.names_).whole());
  return expression;
}

Value Expression::evaluate(const Scene& scene) const {
  return root_ ? evaluate_node(*root_, scene) : Value{};
}

bool Expression::holds(const Scene& scene) const {
  return !root_ || truth(evaluate(scene));
}

}  // namespace gpuwright
