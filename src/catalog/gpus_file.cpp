#include "catalog/gpus_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/json.h"
#include "base/text.h"

namespace gpuwright::catalog {
namespace {

constexpr std::size_t kMaxRows = 10'000;

// Lines of a TOML file, by row of [[gpu]] and key; line 0 of a row is where it begins.
using Lines = std::map<std::pair<std::size_t, std::string>, std::int64_t>;

// What a field's reader needs besides the value: where it stands, for messages, and the file's named sources.
struct Reader {
  std::string_view origin;
  const Lines* lines = nullptr;  // null: the file has no lines that a person could look up
  std::map<std::string, std::string, std::less<>> sources;
  std::size_t row = 0;
  std::string_view key;

  tl::unexpected<Error> wrong(std::string what, std::string hint = {}) const {
    Location where{std::string(origin), {}, {}};
    if (lines != nullptr)
      if (const auto line = lines->find({row, std::string(key)}); line != lines->end()) where.line = line->second;
    return fail_at(ErrorCode::bad_input, std::move(where), std::move(what), std::move(hint));
  }

  Result<std::string> text(const Json& value) const {
    const auto text = value.as_string();
    if (!text) return wrong("a text in quotes is needed here");
    return std::string(*text);
  }
  Result<double> number(const Json& value) const {
    const auto number = value.as_double();
    if (!number || !std::isfinite(*number) || *number < 0 || *number > 1e9)
      return wrong("a number from 0 to 1e9 is needed here");
    return *number;
  }
  Result<int> integer(const Json& value, std::int64_t low) const {
    const auto number = value.as_int();
    if (!number || *number < low || *number > 1'000'000)
      return wrong(fmt::format("a whole number from {} to 1000000 is needed here", low));
    return static_cast<int>(*number);
  }
  Result<std::vector<std::string>> texts(const Json& value) const {
    if (!value.is_array()) return wrong("a list of texts is needed here");
    std::vector<std::string> values;
    for (const Json& item : value.items()) values.push_back(GW_TRY(text(item)));
    return values;
  }
  Result<Bytes> memory(const Json& value, double unit) const {
    const double size = GW_TRY(number(value));
    if (size <= 0 || size * unit > 1e15) return wrong("this is no size that a memory can have");
    return Bytes{static_cast<std::int64_t>(size * unit)};
  }
};

using Setter = Status (*)(const Reader&, const Json&, Accelerator&);

template <std::string Accelerator::*Member>
Status set_text(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.*Member = GW_TRY(reader.text(node));
  return {};
}
template <std::optional<std::string> Accelerator::*Member>
Status set_optional_text(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.*Member = GW_TRY(reader.text(node));
  return {};
}
template <std::vector<std::string> Accelerator::*Member>
Status set_texts(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.*Member = GW_TRY(reader.texts(node));
  return {};
}
template <std::optional<double> Accelerator::*Member>
Status set_number(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.*Member = GW_TRY(reader.number(node));
  return {};
}
template <std::optional<int> Accelerator::*Member>
Status set_integer(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.*Member = GW_TRY(reader.integer(node, 0));
  return {};
}
template <std::optional<double> Throughput::*Member>
Status set_rate(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.throughput.*Member = GW_TRY(reader.number(node));
  return {};
}

Status set_devices(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.devices_per_board = GW_TRY(reader.integer(node, 1));
  return {};
}
Status set_memory(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.nominal_memory = GW_TRY(reader.memory(node, 1024.0 * 1024.0 * 1024.0));
  return {};
}
Status set_usable(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.usable_memory = GW_TRY(reader.memory(node, 1024.0 * 1024.0));
  return {};
}
Status set_unified(const Reader& reader, const Json& node, Accelerator& gpu) {
  const auto value = node.as_bool();
  if (!value) return reader.wrong("true or false is needed here");
  gpu.unified_memory = *value;
  return {};
}
Status set_power(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.board_power = Watts{GW_TRY(reader.number(node))};
  return {};
}
Status set_price(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.launch_price = Money{std::llround(GW_TRY(reader.number(node)) * 1e6), "USD"};
  return {};
}

std::optional<std::uint16_t> hexadecimal(std::string_view text) {
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 4 || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "10de:25b6" or "10de:25b6/10de:14a9"
std::optional<PciId> parse_pci_id(std::string_view text) {
  if (text.size() != 9 && text.size() != 19) return std::nullopt;
  const auto vendor = hexadecimal(text.substr(0, 4)), device = hexadecimal(text.substr(5, 4));
  if (!vendor || !device || text[4] != ':') return std::nullopt;
  PciId id{*vendor, *device};
  if (text.size() == 19) {
    const auto subsystem_vendor = hexadecimal(text.substr(10, 4)), subsystem = hexadecimal(text.substr(15, 4));
    if (!subsystem_vendor || !subsystem || text[9] != '/' || text[14] != ':') return std::nullopt;
    id.subsystem_vendor = *subsystem_vendor;
    id.subsystem_device = *subsystem;
  }
  return id;
}

Status set_pci_ids(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.pci_ids.clear();
  for (const std::string& text : GW_TRY(reader.texts(node))) {
    const auto id = parse_pci_id(text);
    if (!id)
      return reader.wrong(fmt::format("\"{}\" is no PCI id", text), "write \"10de:2684\" or \"10de:25b6/10de:14a9\"");
    gpu.pci_ids.push_back(*id);
  }
  return {};
}

Status set_mig_profiles(const Reader& reader, const Json& node, Accelerator& gpu) {
  if (!node.is_array()) return reader.wrong("a list of {name, memory_gib, max_instances} is needed here");
  gpu.mig_profiles.clear();
  for (const Json& item : node.items()) {
    const Json *name = item.find("name"), *memory = item.find("memory_gib"), *count = item.find("max_instances");
    if (name == nullptr || memory == nullptr || count == nullptr || item.members().size() != 3)
      return reader.wrong("a MIG profile has name, memory_gib and max_instances");
    MigProfile profile;
    profile.name = GW_TRY(reader.text(*name));
    profile.memory = GW_TRY(reader.memory(*memory, 1024.0 * 1024.0 * 1024.0));
    profile.max_instances = GW_TRY(reader.integer(*count, 1));
    gpu.mig_profiles.push_back(std::move(profile));
  }
  return {};
}

Status set_sources(const Reader& reader, const Json& node, Accelerator& gpu) {
  gpu.sources.clear();
  for (const std::string& text : GW_TRY(reader.texts(node))) {
    const auto named = reader.sources.find(text);
    if (named == reader.sources.end() && text.find(' ') == std::string::npos && text.find('.') == std::string::npos)
      return reader.wrong(fmt::format("[sources] has no \"{}\"", text), "name it there or spell the source out");
    gpu.sources.push_back(named == reader.sources.end() ? text : named->second);
  }
  return {};
}

Status set_unknown(const Reader& reader, const Json& node, Accelerator& gpu) {
  if (!node.is_object()) return reader.wrong("a table {field = \"reason\"} is needed here");
  gpu.unknown.clear();
  for (const auto& [key, value] : node.members()) gpu.unknown[key] = GW_TRY(reader.text(value));
  return {};
}

const std::map<std::string_view, Setter>& setters() {
  using A = Accelerator;
  using T = Throughput;
  static const std::map<std::string_view, Setter> kSetters = {
      {"id", set_text<&A::id>},
      {"vendor", set_text<&A::vendor>},
      {"name", set_text<&A::name>},
      {"aliases", set_texts<&A::aliases>},
      {"family", set_text<&A::family>},
      {"architecture", set_text<&A::architecture>},
      {"chip", set_text<&A::chip>},
      {"year", set_integer<&A::year>},
      {"form_factor", set_text<&A::form_factor>},
      {"devices_per_board", set_devices},
      {"memory_gib", set_memory},
      {"usable_memory_mib", set_usable},
      {"usable_memory_source", set_text<&A::usable_memory_source>},
      {"memory_type", set_text<&A::memory_type>},
      {"unified_memory", set_unified},
      {"memory_bandwidth_gb_per_second", set_number<&A::memory_bandwidth_gb_per_second>},
      {"fp32_tflops", set_rate<&T::fp32_tflops>},
      {"tf32_tflops", set_rate<&T::tf32_tflops>},
      {"fp16_tflops", set_rate<&T::fp16_tflops>},
      {"fp16_accumulate_fp16_tflops", set_rate<&T::fp16_accumulate_fp16_tflops>},
      {"bf16_tflops", set_rate<&T::bf16_tflops>},
      {"fp8_tflops", set_rate<&T::fp8_tflops>},
      {"fp4_tflops", set_rate<&T::fp4_tflops>},
      {"int8_tops", set_rate<&T::int8_tops>},
      {"compute_capability", set_optional_text<&A::compute_capability>},
      {"multiprocessors", set_integer<&A::multiprocessors>},
      {"boost_mhz", set_number<&A::boost_mhz>},
      {"nvlink_gb_per_second", set_number<&A::nvlink_gb_per_second>},
      {"pcie", set_text<&A::pcie>},
      {"board_power_watts", set_power},
      {"launch_price_usd", set_price},
      {"first_cuda", set_optional_text<&A::first_cuda>},
      {"last_cuda", set_optional_text<&A::last_cuda>},
      {"first_driver", set_optional_text<&A::first_driver>},
      {"last_driver", set_optional_text<&A::last_driver>},
      {"pci_ids", set_pci_ids},
      {"mig_profiles", set_mig_profiles},
      {"sources", set_sources},
      {"unverified", set_texts<&A::unverified>},
      {"unknown", set_unknown},
      {"notes", set_text<&A::notes>},
  };
  return kSetters;
}

// unverified = ["figures"] stands for every figure that the row has.
void spell_out_figures(const Json& row, Accelerator& gpu) {
  const auto word = std::find(gpu.unverified.begin(), gpu.unverified.end(), "figures");
  if (word == gpu.unverified.end()) return;
  gpu.unverified.erase(word);
  static constexpr std::string_view kFigures[] = {"memory_bandwidth_gb_per_second",
                                                  "fp32_tflops",
                                                  "tf32_tflops",
                                                  "fp16_tflops",
                                                  "fp16_accumulate_fp16_tflops",
                                                  "bf16_tflops",
                                                  "fp8_tflops",
                                                  "fp4_tflops",
                                                  "int8_tops",
                                                  "nvlink_gb_per_second",
                                                  "board_power_watts",
                                                  "launch_price_usd"};
  for (const std::string_view figure : kFigures) {
    const Json* value = row.find(figure);
    if (value != nullptr && value->as_double().value_or(0) > 0) gpu.unverified.emplace_back(figure);
  }
}

tl::unexpected<Error> no_such_field(const Reader& reader, const std::string& key) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : setters()) names.emplace_back(name);
  const auto near = nearest_name(key, names);
  return reader.wrong(fmt::format("a GPU has no field \"{}\"", key),
                      near ? fmt::format("did you mean {}?", *near) : "");
}

Status read_row(Reader& reader, const Json& row, Accelerator& gpu) {
  for (const auto& [key, value] : row.members()) {
    reader.key = key;
    const auto setter = setters().find(key);
    if (setter == setters().end()) return no_such_field(reader, key);
    GW_TRY(setter->second(reader, value, gpu));
  }
  spell_out_figures(row, gpu);
  // A total that was measured on another amount of memory says nothing about this one.
  if (row.find("memory_gib") != nullptr && row.find("usable_memory_mib") == nullptr) {
    gpu.usable_memory.reset();
    gpu.usable_memory_source.clear();
  }
  return {};
}

Status check_row(Reader& reader, const Accelerator& gpu) {
  reader.key = "";
  if (gpu.vendor.empty() || gpu.name.empty() || gpu.nominal_memory.count <= 0)
    return reader.wrong(fmt::format("the new GPU \"{}\" needs vendor, name and memory_gib", gpu.id));
  if (gpu.usable_memory && *gpu.usable_memory > gpu.nominal_memory)
    return reader.wrong(fmt::format("\"{}\" has more usable memory than memory", gpu.id));
  return {};
}

Result<std::string> id_of(Reader& reader, const Json& row) {
  reader.key = "";
  const Json* id = row.find("id");
  if (id == nullptr) return reader.wrong("every [[gpu]] needs an id");
  reader.key = "id";
  std::string text = GW_TRY(reader.text(*id));
  if (text.empty()) return reader.wrong("an id cannot be empty");
  return text;
}

Status read_rows(Reader& reader, const Json& array, std::vector<Accelerator>& rows) {
  std::map<std::string, std::size_t, std::less<>> index;
  for (std::size_t i = 0; i < rows.size(); ++i) index.emplace(rows[i].id, i);
  rows.reserve(rows.size() + std::min(array.items().size(), kMaxRows));
  std::set<std::string, std::less<>> seen;
  for (const Json& row : array.items()) {
    const std::string id = GW_TRY(id_of(reader, row));
    if (!seen.insert(id).second) return reader.wrong(fmt::format("\"{}\" is already defined above", id));
    const auto [at, added] = index.emplace(id, rows.size());
    if (added) rows.emplace_back();
    if (rows.size() > kMaxRows) return reader.wrong(fmt::format("more than {} GPUs", kMaxRows));
    GW_TRY(read_row(reader, row, rows[at->second]));
    GW_TRY(check_row(reader, rows[at->second]));
    ++reader.row;
  }
  return {};
}

constexpr std::size_t kTopLevel = static_cast<std::size_t>(-1);

Status read_root(Reader reader, const Json& root, std::vector<Accelerator>& rows) {
  reader.row = kTopLevel;
  for (const auto& [key, value] : root.members()) {
    reader.key = key;
    if (key == "gpu" && value.is_array()) continue;
    if (key != "sources" || !value.is_object())
      return reader.wrong(fmt::format("unknown key \"{}\"", key), "a file of GPUs has [sources] and [[gpu]]");
    for (const auto& [name, source] : value.members()) reader.sources[name] = GW_TRY(reader.text(source));
  }
  const Json* gpus = root.find("gpu");
  reader.row = 0;
  return gpus != nullptr ? read_rows(reader, *gpus, rows) : Status{};
}

// TOML's own depth limit bounds the recursion. Dates become null, which no field takes.
Json json_from(const toml::node& node) {
  if (const toml::table* table = node.as_table()) {
    Json object = Json::object();
    for (const auto& [key, value] : *table) object.set(key.str(), json_from(value));
    return object;
  }
  if (const toml::array* array = node.as_array()) {
    Json list = Json::array();
    for (const toml::node& item : *array) list.push(json_from(item));
    return list;
  }
  if (const auto text = node.value_exact<std::string>()) return Json(*text);
  if (const auto whole = node.value_exact<std::int64_t>()) return Json(*whole);
  if (const auto number = node.value_exact<double>()) return Json(*number);
  if (const auto truth = node.value_exact<bool>()) return Json(*truth);
  return {};
}

Lines lines_of(const toml::table& root) {
  Lines lines;
  for (const auto& [key, value] : root) lines[{kTopLevel, std::string(key.str())}] = value.source().begin.line;
  const toml::array* rows = root["gpu"].as_array();
  for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
    lines[{i, ""}] = rows->get(i)->source().begin.line;
    if (const toml::table* row = rows->get(i)->as_table())
      for (const auto& [key, value] : *row) lines[{i, std::string(key.str())}] = value.source().begin.line;
  }
  return lines;
}

Result<toml::table> parse_toml(std::string_view text, std::string_view origin) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    return fail_at(ErrorCode::bad_input, {std::string(origin), error.source().begin.line, {}},
                   std::string(error.description()));
  }
}

}  // namespace

Status read_gpus_file(std::string_view text, std::string_view origin, std::vector<Accelerator>& rows) {
  const toml::table root = GW_TRY(parse_toml(text, origin));
  const Lines lines = lines_of(root);
  return read_root({origin, &lines, {}, 0, {}}, json_from(root), rows);
}

Status read_gpus_json(std::string_view text, std::string_view origin, std::vector<Accelerator>& rows) {
  return read_root({origin, nullptr, {}, 0, {}}, GW_TRY(parse_json(text, origin)), rows);
}

}  // namespace gpuwright::catalog
