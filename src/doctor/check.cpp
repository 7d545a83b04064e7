#include "doctor/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>

#include "doctor/machine.h"

namespace gpuwright::doctor {
namespace {

// Facts point to their kinds: each kind is made once and lives for ever.
const FactKind& kind_of(std::string_view name, FactType type, bool list) {
  static std::mutex mutex;
  static std::deque<FactKind> kinds;
  const std::lock_guard lock(mutex);
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const FactKind& kind) {
    return kind.name == name && kind.type == type && kind.list == list;
  });
  if (found != kinds.end()) return *found;
  return kinds.emplace_back(FactKind{std::string(name), type, list, false, false});
}

}  // namespace

std::string_view to_string(Layer layer) {
  constexpr std::array<std::string_view, 12> kNames = {"bus",    "kernel module", "driver",        "device nodes",
                                                       "fabric", "hardware",      "system",        "container",
                                                       "CUDA",   "framework",     "communication", "cluster"};
  return kNames[static_cast<std::size_t>(layer)];
}

std::string_view to_string(State state) {
  constexpr std::array<std::string_view, 4> kNames = {"ok", "wrong", "unknown", "does not apply"};
  return kNames[static_cast<std::size_t>(state)];
}

FactSheet& FactSheet::set(std::string_view name, std::string_view text) {
  if (!text.empty()) facts_.add(kind_of(name, FactType::text, false), std::string(text));
  return *this;
}
FactSheet& FactSheet::set(std::string_view name, std::int64_t number) {
  facts_.add(kind_of(name, FactType::integer, false), fmt::format("{}", number));
  return *this;
}
FactSheet& FactSheet::set(std::string_view name, Bytes bytes) {
  facts_.add(kind_of(name, FactType::bytes, false), fmt::format("{}", bytes.count));
  return *this;
}
FactSheet& FactSheet::version(std::string_view name, std::string_view text) {
  if (!text.empty()) facts_.add(kind_of(name, FactType::version, false), std::string(text));
  return *this;
}
FactSheet& FactSheet::add(std::string_view name, std::string_view item) {
  facts_.add(kind_of(name, FactType::text, true), std::string(item));
  return *this;
}

std::vector<FactValue> FactSheet::values() const {
  std::vector<FactValue> values;
  for (const Fact& fact : facts_.all())
    values.push_back({fact.kind->name, fact.items, is_number(fact.kind->type), fact.kind->list});
  return values;
}

Problem& Outcome::wrong(std::string_view id) {
  state = State::wrong;
  const auto known = std::find_if(problems.begin(), problems.end(), [&](const Problem& one) { return one.id == id; });
  if (known != problems.end()) return *known;
  problems.push_back({std::string(id), {}, {}});
  return problems.back();
}

Outcome fine(std::string text) {
  return {State::ok, std::move(text), {}};
}
Outcome unknown(std::string why) {
  return {State::unknown, std::move(why), {}};
}
Outcome not_applicable(std::string why) {
  return {State::not_applicable, std::move(why), {}};
}

}  // namespace gpuwright::doctor
