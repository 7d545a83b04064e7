// The smallest change that makes a refused wish possible: first every wish that alone can be changed, to its nearest
// value that works; only where there is none, two wishes at once, and so on.
#include <algorithm>

#include "base/rules/facts.h"
#include "doctor/setup/setup.h"
#include "doctor/setup/solver.h"

namespace gpuwright::doctor {
namespace {

// Something in the wish that can give way.
struct Knob {
  std::string name;
  std::string asked;
  std::vector<std::string> nearest;  // values to try, the nearest first; none: it is only dropped
  void (*set)(SetupWish&, const std::string&);
  bool frees = true;  // with an empty value it is the solver's choice
};

// The values above the one that was asked for, rising, then those below, falling.
std::vector<std::string> by_distance(std::vector<std::string> values, const std::string& asked) {
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return compare_versions(a, b) < 0; });
  values.erase(std::unique(values.begin(), values.end()), values.end());
  const auto above = std::partition_point(values.begin(), values.end(),
                                          [&](const auto& value) { return compare_versions(value, asked) <= 0; });
  std::vector<std::string> order(above, values.end());
  for (auto below = above; below != values.begin();) {
    --below;
    if (compare_versions(*below, asked) != 0) order.push_back(*below);
  }
  return order;
}

std::optional<std::string> given(const std::string& value) {
  return value.empty() ? std::nullopt : std::optional(value);
}

std::vector<std::string> distributions_like(const SetupTables& tables, const std::string& asked) {
  const std::string kind = asked.substr(0, asked.find('-'));
  std::vector<std::string> versions;
  for (const SetupDistribution& one : tables.distributions)
    if (one.id.starts_with(kind + "-")) versions.push_back(one.id.substr(kind.size() + 1));
  versions = by_distance(std::move(versions), asked.size() > kind.size() ? asked.substr(kind.size() + 1) : "0");
  for (std::string& version : versions) version = kind + "-" + version;
  return versions;
}

std::vector<Knob> knobs(const SetupWish& wish, const catalog::Compat& compat, const SetupTables& tables) {
  std::vector<Knob> list;
  if (wish.wants_torch && wish.torch) {
    Knob knob{"torch", catalog::version_prefix(*wish.torch, 2), {}, [](SetupWish& w, const std::string& v) {
                w.torch = given(v);
              }};
    for (const auto& row : compat.torch) knob.nearest.push_back(row.version);
    knob.nearest = by_distance(std::move(knob.nearest), knob.asked);
    list.push_back(std::move(knob));
  }
  if (wish.wants_tensorflow && wish.tensorflow) {
    Knob knob{"tensorflow", catalog::version_prefix(*wish.tensorflow, 2), {}, [](SetupWish& w, const std::string& v) {
                w.tensorflow = given(v);
              }};
    for (const auto& row : compat.tensorflow) knob.nearest.push_back(row.version);
    knob.nearest = by_distance(std::move(knob.nearest), knob.asked);
    list.push_back(std::move(knob));
  }
  if (wish.cuda) {
    Knob knob{"cuda", catalog::version_prefix(*wish.cuda, 2), {}, [](SetupWish& w, const std::string& v) {
                w.cuda = given(v);
              }};
    for (const auto& row : compat.cuda) knob.nearest.push_back(catalog::version_prefix(row.version, 2));
    knob.nearest = by_distance(std::move(knob.nearest), knob.asked);
    list.push_back(std::move(knob));
  }
  if (wish.python) {
    Knob knob{"python",
              catalog::version_prefix(*wish.python, 2),
              {"3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"},
              [](SetupWish& w, const std::string& v) { w.python = given(v); }};
    knob.nearest = by_distance(std::move(knob.nearest), knob.asked);
    list.push_back(std::move(knob));
  }
  if (wish.driver) {
    Knob knob{"driver", *wish.driver, {}, [](SetupWish& w, const std::string& v) { w.driver = given(v); }};
    // No branch that is no longer cared for is advised.
    for (const auto& row : compat.branches)
      if (row.end >= wish.today) knob.nearest.push_back(std::to_string(row.branch));
    knob.nearest = by_distance(std::move(knob.nearest), catalog::version_prefix(knob.asked, 1));
    if (knob.asked.find('.') != std::string::npos)  // a newer version of its own branch is nearer
      knob.nearest.insert(knob.nearest.begin(), catalog::version_prefix(knob.asked, 1));
    list.push_back(std::move(knob));
  }
  if (wish.wants_jax && (wish.wants_torch || wish.wants_tensorflow))
    list.push_back({"jax", "", {"no"}, [](SetupWish& w, const std::string&) { w.wants_jax = false; }});
  if (wish.toolkit && !wish.container) {
    list.push_back({"container", "", {"yes"}, [](SetupWish& w, const std::string&) { w.container = true; }});
    if (wish.wants_torch || wish.wants_tensorflow || wish.wants_jax)
      list.push_back({"toolkit", "", {"no"}, [](SetupWish& w, const std::string&) { w.toolkit = false; }});
  }
  Knob distribution{"distribution", wish.distribution, distributions_like(tables, wish.distribution),
                    [](SetupWish& w, const std::string& v) { w.distribution = v; }, false};
  if (!distribution.nearest.empty()) list.push_back(std::move(distribution));
  return list;
}

SetupChange change_of(const std::vector<std::pair<const Knob*, std::string>>& values, SetupSet set,
                      const SetupTables& tables) {
  SetupChange change;
  for (const auto& [knob, value] : values) {
    const auto name_of = [&](const std::string& id) {
      const SetupDistribution* one = tables.distribution(id);
      return one != nullptr ? one->name : id;
    };
    const Words text = filled_in(tables.changes.find(knob->name)->second,
                                 {{"value", name_of(value)}, {"asked", name_of(knob->asked)}});
    change.text.en += (change.text.en.empty() ? "" : "; ") + text.en;
    change.text.zh += (change.text.zh.empty() ? "" : "；") + text.zh;
    change.values.emplace_back(knob->name, value);
  }
  change.set = std::move(set);
  return change;
}

// What the solver chose for a wish that was left to it.
std::string chosen(const Knob& knob, const SetupSet& set) {
  if (knob.name == "torch" && set.torch != nullptr) return set.torch->version;
  if (knob.name == "tensorflow" && set.tensorflow != nullptr) return set.tensorflow->version;
  if (knob.name == "cuda") return set.cuda;
  if (knob.name == "python") return set.python;
  if (knob.name == "driver" && set.driver) return std::to_string(set.driver->branch);
  return knob.nearest.empty() ? "" : knob.nearest.front();
}

}  // namespace

SetupRefusal Setup::refusal(const SetupWish& wish) const {
  SetupRefusal refusal;
  const auto answer = solve(wish);
  if (answer) return refusal;
  refusal.reason = answer.error();
  const std::vector<Knob> all = knobs(wish, compat_, tables_);
  for (const Knob& knob : all) {
    for (const std::string& value : knob.nearest) {
      SetupWish other = wish;
      knob.set(other, value);
      auto set = solve(other);
      if (!set) continue;
      refusal.changes.push_back(change_of({{&knob, value}}, std::move(*set), tables_));
      break;
    }
  }
  // Several at once, left to the solver: as few as possible.
  std::vector<const Knob*> free;
  for (const Knob& knob : all)
    if (knob.frees) free.push_back(&knob);
  for (unsigned count = 2; count <= free.size() && refusal.changes.empty(); ++count)
    for (unsigned mask = 1; mask < 1U << free.size(); ++mask) {
      if (static_cast<unsigned>(__builtin_popcount(mask)) != count) continue;
      SetupWish other = wish;
      for (std::size_t i = 0; i < free.size(); ++i)
        if ((mask >> i & 1U) != 0) free[i]->set(other, "");
      auto set = solve(other);
      if (!set) continue;
      std::vector<std::pair<const Knob*, std::string>> values;
      for (std::size_t i = 0; i < free.size(); ++i)
        if ((mask >> i & 1U) != 0) values.emplace_back(free[i], chosen(*free[i], *set));
      refusal.changes.push_back(change_of(values, std::move(*set), tables_));
    }
  return refusal;
}

}  // namespace gpuwright::doctor
