// Presets: data/models.toml, compiled in. A name is looked up in three steps, each more forgiving than the last: as it
// is; without organisation and variant suffixes; without punctuation. Names are found by reading lines, and only the
// row that is asked for is parsed as TOML: toml++ takes some 30 ms for the whole file.
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
  std::string_view row;            // "[[model]]" and what follows up to the next
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

// What stands between pairs of quotes; names and sources hold no escapes.
std::vector<std::string_view> quoted(std::string_view line) {
  std::vector<std::string_view> texts;
  for (std::size_t open = line.find('"'); open != std::string_view::npos; open = line.find('"', open)) {
    const std::size_t close = line.find('"', open + 1);
    if (close == std::string_view::npos) break;
    texts.push_back(line.substr(open + 1, close - open - 1));
    open = close + 1;
  }
  return texts;
}

// The lines before the config; a list may go on over several.
Preset scan_row(std::string_view row) {
  Preset preset;
  preset.row = row;
  std::string_view key;
  for (const std::string_view line : split(row.substr(0, row.find("[model.config]")), '\n')) {
    if (const std::size_t equals = line.find(" = "); equals != std::string_view::npos && !line.starts_with(' '))
      key = line.substr(0, equals);
    for (const std::string_view text : quoted(line)) {
      if (key == "id") preset.facts.id = text;
      if (key == "parameters") preset.facts.published_parameters = text;
      if (key == "source") preset.facts.source = text;
      if (key == "repositories") preset.facts.repositories.emplace_back(text);
      if (key == "id" || key == "aliases" || key == "repositories") preset.names.push_back(lower(text));
    }
  }
  return preset;
}

Result<std::vector<Preset>> read_presets() {
  constexpr std::string_view kRow = "[[model]]";
  const auto text = embedded_data("models.toml");
  if (!text) return fail(ErrorCode::internal, "models.toml is not built in");
  std::vector<Preset> presets;
  for (std::size_t at = text->find(kRow); at != std::string_view::npos;) {
    const std::size_t next = text->find(kRow, at + kRow.size());
    presets.push_back(scan_row(text->substr(at, next == std::string_view::npos ? next : next - at)));
    at = next;
  }
  return presets;
}

Result<Json> config_of(const Preset& preset) {
  try {
    const toml::table file = toml::parse(preset.row, std::string_view("models.toml"));
    const toml::array* rows = file["model"].as_array();
    const toml::table* row = rows ? rows->get_as<toml::table>(0) : nullptr;
    const toml::node* config = row ? row->get("config") : nullptr;
    if (config) return to_json(*config);
    return fail(ErrorCode::internal, fmt::format("models.toml: {} has no config", preset.facts.id));
  } catch (const toml::parse_error& error) {
    return fail(ErrorCode::internal, fmt::format("models.toml: {}: {}", preset.facts.id, error.description()));
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

// "whisper" is what is left of "whisper-base" alone, but also begins the names of its brothers: which is meant is open.
std::vector<std::string> brothers(const std::vector<Preset>& all, std::string_view short_name) {
  std::vector<std::string> ids;
  for (const Preset& preset : all)
    if (preset.facts.id.size() > short_name.size() && preset.facts.id[short_name.size()] == '-' &&
        preset.facts.id.starts_with(short_name))
      ids.push_back(preset.facts.id);
  return ids;
}

bool has_plain_name(const Preset& preset, std::string_view stripped) {
  return std::any_of(preset.names.begin(), preset.names.end(), [&](const std::string& name) {
    return squeezed(without_organisation(name)) == squeezed(stripped);
  });
}

// Null when there is none; bad_input when the name is too short to tell.
Result<const Preset*> find_preset(const std::vector<Preset>& all, std::string_view name) {
  const std::string wanted = lower(trim(name));
  if (wanted.empty() || wanted.size() > 200) return nullptr;
  for (const Key key : kKeys) {
    const std::string key_of_wanted = key(wanted);
    for (const Preset& preset : all)
      for (const std::string& candidate : preset.names) {
        if (key(candidate) != key_of_wanted) continue;
        const std::string_view stripped = without_suffixes(without_organisation(wanted));
        const std::vector<std::string> ids = brothers(all, stripped);
        if (ids.size() < 2 || has_plain_name(preset, stripped) || has_plain_name(preset, wanted)) return &preset;
        return fail(ErrorCode::bad_input, fmt::format("\"{}\" may be any of {} presets", name, ids.size()),
                    fmt::format("say which: {}", fmt::join(ids, ", ")));
      }
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
  const Preset* row = GW_TRY(find_preset(*all, name));
  if (!row)
    return fail(ErrorCode::not_found, fmt::format("there is no model preset \"{}\"", name.substr(0, 200)),
                suggestions(*all, name));
  const Json config = GW_TRY(config_of(*row));
  Model model = GW_TRY(model_from_config(config, row->facts.id));
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
