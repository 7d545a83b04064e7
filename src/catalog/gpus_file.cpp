#include "catalog/gpus_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace gpuwright::catalog {
namespace {

constexpr std::size_t kMaxRows = 10'000;

// What a field's reader needs besides the value: where it stands, for messages, and the file's named sources.
struct Reader {
  std::string_view origin;
  std::map<std::string, std::string, std::less<>> sources;

  tl::unexpected<Error> wrong(const toml::node& node, std::string what, std::string hint = {}) const {
    return fail_at(ErrorCode::bad_input, {std::string(origin), node.source().begin.line, {}}, std::move(what),
                   std::move(hint));
  }

  Result<std::string> text(const toml::node& node) const {
    const auto value = node.value_exact<std::string>();
    if (!value) return wrong(node, "a text in quotes is needed here");
    return *value;
  }
  Result<double> number(const toml::node& node) const {
    const auto value = node.value<double>();
    if (!node.is_number() || !value || !std::isfinite(*value) || *value < 0 || *value > 1e9)
      return wrong(node, "a number from 0 to 1e9 is needed here");
    return *value;
  }
  Result<int> integer(const toml::node& node, std::int64_t low) const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < low || *value > 1'000'000)
      return wrong(node, fmt::format("a whole number from {} to 1000000 is needed here", low));
    return static_cast<int>(*value);
  }
  Result<std::vector<std::string>> texts(const toml::node& node) const {
    const toml::array* array = node.as_array();
    if (array == nullptr) return wrong(node, "a list of texts is needed here");
    std::vector<std::string> values;
    for (const toml::node& item : *array) values.push_back(GW_TRY(text(item)));
    return values;
  }
  Result<Bytes> memory(const toml::node& node, double unit) const {
    const double value = GW_TRY(number(node));
    if (value <= 0 || value * unit > 1e15) return wrong(node, "this is no size that a memory can have");
    return Bytes{static_cast<std::int64_t>(value * unit)};
  }
};

using Setter = Status (*)(const Reader&, const toml::node&, Accelerator&);

template <std::string Accelerator::*Member>
Status set_text(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  gpu.*Member = GW_TRY(reader.text(node));
  return {};
}
template <std::optional<std::string> Accelerator::*Member>
Status set_optional_text(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  gpu.*Member = GW_TRY(reader.text(node));
  return {};
}
template <std::vector<std::string> Accelerator::*Member>
Status set_texts(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  gpu.*Member = GW_TRY(reader.texts(node));
  return {};
}
template <std::optional<double> Accelerator::*Member>
Status set_number(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  gpu.*Member = GW_TRY(reader.number(node));
  return {};
}
template <std::optional<int> Accelerator::*Member>
Status set_integer(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  gpu.*Member = GW_TRY(reader.integer(node, 0));
  return {};
}
template <std::optional<double> Throughput::*Member>
Status set_rate(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  gpu.throughput.*Member = GW_TRY(reader.number(node));
  return {};
}

Status set_devices(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  gpu.devices_per_board = GW_TRY(reader.integer(node, 1));
  return {};
}
Status set_memory(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  gpu.nominal_memory = GW_TRY(reader.memory(node, 1024.0 * 1024.0 * 1024.0));
  return {};
}
Status set_usable(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  gpu.usable_memory = GW_TRY(reader.memory(node, 1024.0 * 1024.0));
  return {};
}
Status set_unified(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  const auto value = node.value_exact<bool>();
  if (!value) return reader.wrong(node, "true or false is needed here");
  gpu.unified_memory = *value;
  return {};
}
Status set_power(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  gpu.board_power = Watts{GW_TRY(reader.number(node))};
  return {};
}
Status set_price(const Reader& reader, const toml::node& node, Accelerator& gpu) {
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

Status set_pci_ids(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  gpu.pci_ids.clear();
  for (const std::string& text : GW_TRY(reader.texts(node))) {
    const auto id = parse_pci_id(text);
    if (!id)
      return reader.wrong(node, fmt::format("\"{}\" is no PCI id", text),
                          "write \"10de:2684\" or \"10de:25b6/10de:14a9\"");
    gpu.pci_ids.push_back(*id);
  }
  return {};
}

Status set_mig_profiles(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return reader.wrong(node, "a list of {name, memory_gib, max_instances} is needed here");
  gpu.mig_profiles.clear();
  for (const toml::node& item : *array) {
    const toml::table* row = item.as_table();
    if (row == nullptr || row->size() != 3 || !row->contains("name") || !row->contains("memory_gib") ||
        !row->contains("max_instances"))
      return reader.wrong(item, "a MIG profile has name, memory_gib and max_instances");
    MigProfile profile;
    profile.name = GW_TRY(reader.text(*row->get("name")));
    profile.memory = GW_TRY(reader.memory(*row->get("memory_gib"), 1024.0 * 1024.0 * 1024.0));
    profile.max_instances = GW_TRY(reader.integer(*row->get("max_instances"), 1));
    gpu.mig_profiles.push_back(std::move(profile));
  }
  return {};
}

Status set_sources(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  gpu.sources.clear();
  for (std::string& text : GW_TRY(reader.texts(node))) {
    const auto named = reader.sources.find(text);
    if (named == reader.sources.end() && text.find(' ') == std::string::npos && text.find('.') == std::string::npos)
      return reader.wrong(node, fmt::format("[sources] has no \"{}\"", text), "name it there or spell the source out");
    gpu.sources.push_back(named == reader.sources.end() ? std::move(text) : named->second);
  }
  return {};
}

Status set_unknown(const Reader& reader, const toml::node& node, Accelerator& gpu) {
  const toml::table* table = node.as_table();
  if (table == nullptr) return reader.wrong(node, "a table {field = \"reason\"} is needed here");
  gpu.unknown.clear();
  for (const auto& [key, value] : *table) gpu.unknown[std::string(key.str())] = GW_TRY(reader.text(value));
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
void spell_out_figures(const toml::table& row, Accelerator& gpu) {
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
  for (const std::string_view figure : kFigures)
    if (row[figure].value_or(0.0) > 0.0) gpu.unverified.emplace_back(figure);
}

Status read_row(const Reader& reader, const toml::table& row, Accelerator& gpu) {
  for (const auto& [key, value] : row) {
    const auto setter = setters().find(key.str());
    if (setter == setters().end()) {
      std::vector<std::string> names;
      for (const auto& [name, unused] : setters()) names.emplace_back(name);
      const auto near = nearest_name(key.str(), names);
      return reader.wrong(value, fmt::format("a GPU has no field \"{}\"", key.str()),
                          near ? fmt::format("did you mean {}?", *near) : "");
    }
    GW_TRY(setter->second(reader, value, gpu));
  }
  spell_out_figures(row, gpu);
  // A total that was measured on another amount of memory says nothing about this one.
  if (row.contains("memory_gib") && !row.contains("usable_memory_mib")) {
    gpu.usable_memory.reset();
    gpu.usable_memory_source.clear();
  }
  return {};
}

Status check_row(const Reader& reader, const toml::table& row, const Accelerator& gpu) {
  if (gpu.vendor.empty() || gpu.name.empty() || gpu.nominal_memory.count <= 0)
    return reader.wrong(row, fmt::format("the new GPU \"{}\" needs vendor, name and memory_gib", gpu.id));
  if (gpu.usable_memory && *gpu.usable_memory > gpu.nominal_memory)
    return reader.wrong(row, fmt::format("\"{}\" has more usable memory than memory", gpu.id));
  return {};
}

Status read_rows(const Reader& reader, const toml::array& array, std::vector<Accelerator>& rows) {
  std::map<std::string, std::size_t, std::less<>> index;
  for (std::size_t i = 0; i < rows.size(); ++i) index.emplace(rows[i].id, i);
  std::map<std::string, std::int64_t, std::less<>> seen;
  for (const toml::node& node : array) {
    const toml::table* row = node.as_table();
    const toml::node* id = row != nullptr ? row->get("id") : nullptr;
    if (id == nullptr) return reader.wrong(node, "every [[gpu]] needs an id");
    const std::string name = GW_TRY(reader.text(*id));
    if (name.empty()) return reader.wrong(*id, "an id cannot be empty");
    const auto [first, fresh] = seen.emplace(name, id->source().begin.line);
    if (!fresh) return reader.wrong(*id, fmt::format("\"{}\" is already defined in line {}", name, first->second));
    const auto [at, added] = index.emplace(name, rows.size());
    if (added) rows.emplace_back();
    if (rows.size() > kMaxRows) return reader.wrong(node, fmt::format("more than {} GPUs", kMaxRows));
    GW_TRY(read_row(reader, *row, rows[at->second]));
    GW_TRY(check_row(reader, *row, rows[at->second]));
  }
  return {};
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
  Reader reader{origin, {}};
  for (const auto& [key, value] : root) {
    if (key.str() == "gpu" && value.is_array()) continue;
    const toml::table* sources = key.str() == "sources" ? value.as_table() : nullptr;
    if (sources == nullptr)
      return reader.wrong(value, fmt::format("unknown key \"{}\"", key.str()),
                          "a file of GPUs has [sources] and [[gpu]]");
    for (const auto& [name, source] : *sources) reader.sources[std::string(name.str())] = GW_TRY(reader.text(source));
  }
  const toml::node* gpus = root.get("gpu");
  return gpus != nullptr ? read_rows(reader, *gpus->as_array(), rows) : Status{};
}

}  // namespace gpuwright::catalog
