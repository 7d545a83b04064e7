#include "doctor/setup/tables.h"

#include <algorithm>

#include "base/embedded.h"
#include "base/text.h"
#include "catalog/compat_file.h"

namespace gpuwright::doctor {
namespace {

using catalog::TomlRow;

Result<Words> words(const TomlRow& row, std::string_view key) {
  const toml::table* table = row.table()[key].as_table();
  if (table == nullptr) return row.wrong(fmt::format("{} has to have en and zh", key));
  const TomlRow inner(*table, row.origin());
  return Words{GW_TRY(inner.text("en")), GW_TRY(inner.text("zh"))};
}

Result<ByDialect> by_dialect(const TomlRow& row, std::string_view key) {
  static const std::vector<std::string> kDialects = {"apt",    "debian", "ubuntu", "dnf",  "rhel",
                                                     "rhel10", "fedora", "suse",   "arch", "any"};
  ByDialect lines;
  if (!row.has(key)) return lines;
  const toml::table* table = row.table()[key].as_table();
  if (table == nullptr) return row.wrong(fmt::format("{} has to be a table of lists by distribution", key));
  const TomlRow inner(*table, row.origin());
  for (const auto& [dialect, value] : *table) {
    if (std::find(kDialects.begin(), kDialects.end(), dialect.str()) == kDialects.end())
      return row.wrong(fmt::format("there is no distribution \"{}\"", dialect.str()));
    lines[std::string(dialect.str())] = GW_TRY(inner.texts(dialect.str()));
  }
  return lines;
}

Result<SetupDistribution> read_distribution_row(const TomlRow& row) {
  SetupDistribution one;
  one.id = GW_TRY(row.text("id"));
  one.name = GW_TRY(row.text("name"));
  one.dialects = GW_TRY(row.texts("dialects"));
  one.repository = GW_TRY(row.optional_text("repo"));
  one.pythons = GW_TRY(row.texts("python"));
  one.gcc = GW_TRY(row.integer("gcc", 4, 99));
  if (const toml::array* list = row.table()["older_gcc"].as_array())
    for (const toml::node& node : *list) one.older_gcc.push_back(static_cast<int>(node.value_or(std::int64_t{0})));
  const std::vector<std::string> toolkits = GW_TRY(row.texts("toolkits"));
  if (toolkits.empty() || toolkits.size() > 2) return row.wrong("toolkits has to be the oldest and maybe the newest");
  one.first_toolkit = toolkits[0];
  if (toolkits.size() == 2) one.last_toolkit = toolkits[1];
  one.newest_driver = GW_TRY(row.optional_integer("newest_driver", 100, 9999));
  one.image = GW_TRY(row.optional_text("image")).value_or("ubuntu24.04");
  one.source = GW_TRY(row.text("source"));
  one.verified = GW_TRY(row.flag("verified", true));
  return one;
}

Result<SetupStep> read_step(const TomlRow& row) {
  SetupStep step;
  step.id = GW_TRY(row.text("id"));
  step.title = GW_TRY(words(row, "title"));
  if (row.has("why")) step.why = GW_TRY(words(row, "why"));
  step.repository = GW_TRY(row.optional_text("repository")).value_or("");
  step.packages = GW_TRY(by_dialect(row, "packages"));
  step.commands = GW_TRY(by_dialect(row, "commands"));
  step.reboot = GW_TRY(row.flag("reboot", false));
  return step;
}

Result<OldRecipe> read_recipe(const TomlRow& row) {
  OldRecipe recipe;
  recipe.id = GW_TRY(row.text("id"));
  recipe.when = GW_TRY(row.texts("when"));
  recipe.said = GW_TRY(words(row, "said"));
  recipe.truth = GW_TRY(words(row, "true"));
  recipe.source = GW_TRY(row.text("source"));
  return recipe;
}

Status read_texts(const TomlRow& file, std::string_view key, std::map<std::string, Words, std::less<>>& into) {
  const toml::table* table = file.table()[key].as_table();
  if (table == nullptr) return file.wrong(fmt::format("[{}] is missing", key));
  const TomlRow row(*table, file.origin());
  for (const auto& [name, value] : *table) into[std::string(name.str())] = GW_TRY(words(row, name.str()));
  return {};
}

template <class Row>
Status read_rows(const TomlRow& file, std::string_view key, Result<Row> (*read)(const TomlRow&),
                 std::vector<Row>& into) {
  return file.rows(key, [&](const TomlRow& row) -> Status {
    into.push_back(GW_TRY(read(row)));
    return {};
  });
}

}  // namespace

Result<SetupTables> SetupTables::from_toml(std::string_view text, std::string_view name) {
  const toml::table root = GW_TRY(catalog::parse_toml_file(text, name));
  const TomlRow file(root, name);
  SetupTables tables;
  GW_TRY(read_rows(file, "distribution", read_distribution_row, tables.distributions));
  GW_TRY(read_rows(file, "step", read_step, tables.steps));
  GW_TRY(read_rows(file, "recipe", read_recipe, tables.recipes));
  GW_TRY(read_texts(file, "reason", tables.reasons));
  GW_TRY(read_texts(file, "change", tables.changes));
  GW_TRY(read_texts(file, "word", tables.words));
  const toml::table* checks = root["check"].as_table();
  if (checks == nullptr) return file.wrong("[check] is missing");
  for (const auto& [key, value] : *checks) tables.checks[std::string(key.str())] = value.value_or(std::string());
  return tables;
}

Result<SetupTables> SetupTables::load() {
  const auto builtin = embedded_data("setup.toml");
  if (!builtin) return fail(ErrorCode::internal, "the tables of setup were not built in");
  return from_toml(*builtin, "setup.toml (built in)");
}

const SetupDistribution* SetupTables::distribution(std::string_view id) const {
  for (const SetupDistribution& one : distributions)
    if (one.id == id) return &one;
  return nullptr;
}

const SetupStep* SetupTables::step(std::string_view id) const {
  for (const SetupStep& one : steps)
    if (one.id == id) return &one;
  return nullptr;
}

const std::vector<std::string>* nearest(const ByDialect& lines, const std::vector<std::string>& dialects) {
  for (const std::string& dialect : dialects)
    if (const auto found = lines.find(dialect); found != lines.end()) return &found->second;
  return nullptr;
}

std::string filled_in(std::string_view text, const Names& names) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t open = text.find('{', i);
    if (open == std::string_view::npos) return result.append(text.substr(i));
    const std::size_t close = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", open + 1);
    const auto known = close != std::string_view::npos && text[close] == '}'
                           ? names.find(text.substr(open + 1, close - open - 1))
                           : names.end();
    result.append(text.substr(i, open - i));
    if (known == names.end()) {
      result += '{';
      i = open + 1;
    } else {
      result += known->second;
      i = close + 1;
    }
  }
  return result;
}

Words filled_in(const Words& words, const Names& names) {
  return {filled_in(words.en, names), filled_in(words.zh, names)};
}

}  // namespace gpuwright::doctor
