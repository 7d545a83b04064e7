#include "doctor/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <toml++/toml.h>

#include "base/embedded.h"

namespace gpuwright::doctor {
namespace {

constexpr std::array<std::string_view, 9> kDialects = {"any",  "apt",    "debian", "ubuntu", "dnf",
                                                       "rhel", "fedora", "suse",   "arch"};

class ProblemFile {
 public:
  ProblemFile(const std::string& name, std::map<std::string, Commands, std::less<>>& recipes)
      : name_(name), recipes_(recipes) {}

  Status read_recipes(const toml::table& file) {
    const toml::table* table = file["recipe"].as_table();
    if (table == nullptr) return {};
    for (const auto& [key, node] : *table) {
      const std::string recipe_name(key.str());
      if (recipes_.contains(recipe_name)) return wrong(file, fmt::format("recipe {} stands twice", recipe_name));
      recipes_[recipe_name] = GW_TRY(commands(file, node));
    }
    return {};
  }

  Result<ProblemText> problem(const toml::table& row) {
    ProblemText problem;
    problem.id = row["id"].value_or(std::string());
    const auto severity = severity_named(row["severity"].value_or(std::string()));
    const auto scope = scope_named(row["scope"].value_or(std::string()));
    if (problem.id.empty() || !severity || !scope) return wrong(row, "id, severity or scope is missing or unknown");
    problem.severity = *severity;
    problem.scope = *scope;
    problem.title = words(row["title"]);
    problem.cause = words(row["cause"]);
    problem.stays = row["stays"].value_or(false);
    if (const toml::array* list = row["yields_to"].as_array())
      for (const toml::node& item : *list) problem.yields_to.push_back(item.value_or(std::string()));
    if (const toml::array* list = row["fix"].as_array())
      for (const toml::node& item : *list)
        if (const toml::table* table = item.as_table()) problem.fixes.push_back(GW_TRY(fix(*table)));
    return problem;
  }

  tl::unexpected<Error> wrong(const toml::table& row, std::string what) const {
    return fail_at(ErrorCode::bad_input, {name_, row.source().begin.line, std::nullopt}, std::move(what));
  }

 private:
  static Words words(toml::node_view<const toml::node> node) {
    return {node["en"].value_or(std::string()), node["zh"].value_or(std::string())};
  }

  Result<ProblemFix> fix(const toml::table& row) {
    ProblemFix fix;
    fix.text = {row["en"].value_or(std::string()), row["zh"].value_or(std::string())};
    fix.reboot = row["reboot"].value_or(false);
    fix.safe = row["safe"].value_or(false);
    fix.url = row["url"].value_or(std::string());
    Result<Expression> when = Expression::parse(row["when"].value_or(std::string()));
    if (!when) return wrong(row, "when: " + when.error().what);
    fix.when = std::move(*when);
    if (const toml::node* node = row.get("commands")) fix.commands = GW_TRY(commands(row, *node));
    return fix;
  }

  Result<Commands> commands(const toml::table& row, const toml::node& node) {
    if (const auto name = node.value<std::string>()) {
      const auto recipe = name->starts_with('@') ? recipes_.find(std::string_view(*name).substr(1)) : recipes_.end();
      if (recipe == recipes_.end()) return wrong(row, fmt::format("there is no recipe {}", *name));
      return recipe->second;
    }
    Commands by_dialect;
    if (const toml::array* list = node.as_array()) by_dialect["any"] = list_of(*list);
    if (const toml::table* table = node.as_table())
      for (const auto& [key, value] : *table) {
        if (std::find(kDialects.begin(), kDialects.end(), key.str()) == kDialects.end())
          return wrong(row, fmt::format("there is no distribution \"{}\"", key.str()));
        if (const toml::array* list = value.as_array()) by_dialect[std::string(key.str())] = list_of(*list);
      }
    return by_dialect;
  }

  static std::vector<std::string> list_of(const toml::array& list) {
    std::vector<std::string> commands;
    for (const toml::node& item : list) commands.push_back(item.value_or(std::string()));
    return commands;
  }

  const std::string& name_;
  std::map<std::string, Commands, std::less<>>& recipes_;
};

}  // namespace

Result<ProblemBook> ProblemBook::load() {
  ProblemBook book;
  for (const char* file : {"checks.toml", "checks_machine.toml", "checks_software.toml"})
    if (const auto text = embedded_data(file)) GW_TRY(book.add(*text, file));
  return book;
}

Status ProblemBook::add(std::string_view text, const std::string& name) {
  try {
    const toml::table file = toml::parse(text, name);
    ProblemFile reader(name, recipes_);
    GW_TRY(reader.read_recipes(file));
    const toml::array* rows = file["problem"].as_array();
    for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
      const toml::table* row = rows->get(i)->as_table();
      if (row == nullptr) return fail_at(ErrorCode::bad_input, {name, {}, {}}, "[[problem]] is not a table");
      auto problem = std::make_unique<ProblemText>(GW_TRY(reader.problem(*row)));
      if (find(problem->id) != nullptr) return reader.wrong(*row, fmt::format("{} stands twice", problem->id));
      problems_.push_back(std::move(problem));
    }
  } catch (const toml::parse_error& error) {
    return fail_at(ErrorCode::bad_input, {name, error.source().begin.line, std::nullopt},
                   std::string(error.description()));
  }
  return {};
}

const ProblemText* ProblemBook::find(std::string_view id) const {
  const auto found =
      std::find_if(problems_.begin(), problems_.end(), [&](const auto& problem) { return problem->id == id; });
  return found == problems_.end() ? nullptr : found->get();
}

}  // namespace gpuwright::doctor
