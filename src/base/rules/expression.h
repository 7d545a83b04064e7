// The conditions and computed values of rules, as written in data/errors.toml:
//   "oom_device and tried_bytes > total_bytes"
//   "free_bytes >= tried_bytes + 64 MiB and not limit_bytes"
//   "max(compute_capability_list) < compute_capability"
// A name is a symptom (true when it was seen), a fact, or another finding's kind in quotes within found(). Nothing is
// guessed: a comparison or sum with a fact that is not there is neither true nor a value, and `not` of it is true only
// for a bare name. Operators by rising strength: or, and, not, comparison (= != < <= > >= ~), + -, * /. Numbers may
// carry KiB, MiB, GiB, % or s. Functions: max, min, count, distinct (of a list), product, line (where a symptom was
// first seen), times (how often), found (a finding of that kind or "group.*"), and questions to the tables of what is
// known: capability (of a GPU's name), driver_for (a CUDA version: the oldest driver), torch_tag_for and
// first_torch_for (a capability: the build of today's PyTorch with code for it, and the first release that had it).
// Versions and capabilities compare part by part.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "base/rules/facts.h"

namespace gpuwright {

struct Version {
  std::string text;
};
// Nothing (monostate), true or false, a number, text, a version.
using Value = std::variant<std::monostate, bool, double, std::string, Version>;

// What an expression is evaluated against. Where nothing can be asked of a kind (no log, no symptoms), nothing was
// seen.
struct Scene {
  const Facts* facts = nullptr;
  std::function<std::int64_t(std::string_view symptom)> first_line = {};  // 0 = not seen
  std::function<std::int64_t(std::string_view symptom)> times = {};
  std::function<bool(std::string_view kind)> found = {};  // "oom.*" matches by prefix
  // What the tables answer to capability, driver_for, torch_tag_for, first_torch_for.
  std::function<std::optional<std::string>(std::string_view question, std::string_view of)> lookup = {};
};

class Expression {
 public:
  // An error says what is wrong at which character.
  static Result<Expression> parse(std::string_view text);
  Expression();
  ~Expression();
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  bool empty() const { return root_ == nullptr; }
  Value evaluate(const Scene& scene) const;
  bool holds(const Scene& scene) const;  // an empty expression holds
  // Bare names that it reads: symptoms and facts, for the lint of rules.
  const std::set<std::string>& names() const { return names_; }

  struct Node;

 private:
  std::unique_ptr<Node> root_;
  std::set<std::string> names_;
};

}  // namespace gpuwright
