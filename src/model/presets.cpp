// Presets: data/models.toml, compiled in. A name is looked up in three steps, each more forgiving than the last: as it
// is; without organisation and variant suffixes; without punctuation.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include <toml++/toml.h>

#include "base/embedded.h"
#include "base/text.h"
#include "model/config.h"

namespace gpuwright::model {
namespace {

struct Preset {
  PresetFacts facts;
  std::vector<std::string> names;  // id, aliases, repositories; lower case
  Json config;
};

Json to_json(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    Json object = Json::object();
    for (const auto& [key, value] : *table) object.set(key.str(), to_json(value));
    return object;
  }
  if (const auto* array = node.as_array()) {
    Json list = Json::array();
    for (const toml::node& value : *array) list.push(to_json(value));
    return list;
  }
  if (const auto flag = node.value_exact<bool>()) return Json(*flag);
  if (const auto number = node.value_exact<std::int64_t>()) return Json(*number);
  if (const auto number = node.value_exact<double>()) return Json(*number);
  if (const auto text = node.value_exact<std::string>()) return Json(std::move(*text));
  return {};
}

std::vector<std::string> texts(const toml::table& table, std::string_view key) {
  std::vector<std::string> result;
  if (const toml::array* list = table[key].as_array())
    for (const toml::node& node : *list)
      if (auto text = node.value<std::string>()) result.push_back(std::move(*text));
  return result;
}

Result<std::vector<Preset>> presets_of(const toml::table& file) {
  std::vector<Preset> presets;
  const toml::array* rows = file["model"].as_array();
  if (!rows) return presets;
  for (const toml::node& row : *rows) {
    const toml::table* table = row.as_table();
    const auto id = table ? (*table)["id"].value<std::string>() : std::nullopt;
    const toml::node* config = table ? table->get("config") : nullptr;
    if (!id || !config) return fail(ErrorCode::internal, "models.toml: a model without id or config");
    Preset preset{{*id, texts(*table, "repositories"), (*table)["parameters"].value_or(std::string()),
                   (*table)["source"].value_or(std::string())},
                  {lower(*id)},
                  to_json(*config)};
    for (const std::string_view list : {"aliases", "repositories"})
      for (const std::string& name : texts(*table, list)) preset.names.push_back(lower(name));
    presets.push_back(std::move(preset));
  }
  return presets;
}

Result<std::vector<Preset>> read_presets() {
  const auto text = embedded_data("models.toml");
  if (!text) return fail(ErrorCode::internal, "models.toml is not built in");
  try {
    return presets_of(toml::parse(*text, std::string_view("models.toml")));
  } catch (const toml::parse_error& error) {
    return fail_at(ErrorCode::internal, {"models.toml", static_cast<std::int64_t>(error.source().begin.line), {}},
                   std::string(error.description()));
  }
}

const Result<std::vector<Preset>>& presets() {
  static const Result<std::vector<Preset>> all = read_presets();
  return all;
}

std::string_view without_organisation(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

std::string_view without_suffixes(std::string_view name) {
  constexpr std::array<std::string_view, 8> kSuffixes = {"-instruct", "-chat", "-hf",   "-it",
                                                         "-base",     "-pt",   "-text", "-latest"};
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view suffix : kSuffixes)
      if (name.size() > suffix.size() && name.ends_with(suffix)) name.remove_suffix(suffix.size()), again = true;
  }
  return name;
}

// "Llama 3.1 8B", "llama3.1:8b" and "llama-3.1-8b" are the same words.
std::string squeezed(std::string_view name) {
  std::string result;
  for (const char c : name)
    if (c != '-' && c != '_' && c != ' ' && c != ':') result += c;
  return result;
}

using Key = std::string (*)(std::string_view);
constexpr Key kKeys[] = {
    [](std::string_view name) { return std::string(name); },
    [](std::string_view name) { return std::string(without_organisation(name)); },
    [](std::string_view name) { return std::string(without_suffixes(without_organisation(name))); },
    [](std::string_view name) { return squeezed(without_suffixes(without_organisation(name))); },
};

const Preset* find_preset(const std::vector<Preset>& all, std::string_view name) {
  const std::string wanted = lower(trim(name));
  if (wanted.empty() || wanted.size() > 200) return nullptr;
  for (const Key key : kKeys) {
    const std::string key_of_wanted = key(wanted);
    for (const Preset& preset : all)
      for (const std::string& candidate : preset.names)
        if (key(candidate) == key_of_wanted) return &preset;
  }
  return nullptr;
}

// Names that share the first letters, and the one a slip of the finger away.
std::string suggestions(const std::vector<Preset>& all, std::string_view name) {
  const std::string wanted = lower(without_organisation(trim(name)));
  std::vector<std::string> near;
  if (const auto nearest = nearest_name(wanted, preset_names())) near.push_back(*nearest);
  for (std::size_t length = std::min<std::size_t>(wanted.size(), 24); length >= 3 && near.size() < 4; --length)
    for (const Preset& preset : all)
      if (near.size() < 4 &&
          std::string_view(preset.facts.id).substr(0, length) == std::string_view(wanted).substr(0, length) &&
          std::find(near.begin(), near.end(), preset.facts.id) == near.end())
        near.push_back(preset.facts.id);
  return near.empty() ? "name a file, a folder, hf://org/name or a size like 7B"
                      : fmt::format("did you mean {}?", fmt::join(near, ", "));
}

}  // namespace

Result<Model> preset(std::string_view name) {
  const auto& all = presets();
  if (!all) return tl::unexpected(all.error());
  const Preset* row = find_preset(*all, name);
  if (!row)
    return fail(ErrorCode::not_found, fmt::format("there is no model preset \"{}\"", name.substr(0, 200)),
                suggestions(*all, name));
  Model model = GW_TRY(model_from_config(row->config, row->facts.id));
  model.source = Source::preset;
  return model;
}

std::vector<PresetFacts> preset_facts() {
  std::vector<PresetFacts> facts;
  if (const auto& all = presets())
    for (const Preset& row : *all) facts.push_back(row.facts);
  return facts;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  if (const auto& all = presets())
    for (const Preset& row : *all) names.push_back(row.facts.id);
  return names;
}

}  // namespace gpuwright::model
