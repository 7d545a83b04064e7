#include "fit/support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <cctype>

#include "base/embedded.h"
#include "base/text.h"
#include "fit/engine.h"
#include "model/dtype.h"

namespace gpuwright::fit {
namespace {

constexpr std::string_view kFile = "engine_support.toml";
using Words = std::vector<std::string>;

struct EngineRow {
  std::string name, elsewhere, oldest, newest;
  Words vendors, cache_types;
};

struct Rule {
  std::string engine, text, hint, since, before, capability_below;
  bool refuses = false;
  Words vendors, architectures, capabilities_other_than, kinds, families, weights;

  bool asks_for_hardware() const {
    return !vendors.empty() || !architectures.empty() || !capabilities_other_than.empty() || !capability_below.empty();
  }
};

struct Facts {
  std::vector<EngineRow> engines;
  std::vector<Rule> rules;
};

std::string text_of(const toml::table& row, std::string_view key) {
  return row[key].value_or(std::string());
}

Words words_of(const toml::table& row, std::string_view key) {
  Words words;
  if (const toml::array* list = row[key].as_array())
    for (const toml::node& node : *list) words.push_back(node.value_or(std::string()));
  return words;
}

template <class Read>
void each_row(const toml::table& file, std::string_view key, Read read) {
  const toml::array* rows = file[key].as_array();
  for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i)
    if (const toml::table* row = rows->get(i)->as_table()) read(*row);
}

Result<Facts> read_facts() {
  Facts facts;
  try {
    const toml::table file = toml::parse(embedded_data(kFile).value_or(""), kFile);
    each_row(file, "engine", [&](const toml::table& row) {
      facts.engines.push_back({text_of(row, "name"), text_of(row, "elsewhere"), text_of(row, "oldest"),
                               text_of(row, "newest"), words_of(row, "vendors"), words_of(row, "cache_types")});
    });
    each_row(file, "rule", [&](const toml::table& row) {
      facts.rules.push_back({text_of(row, "engine"), text_of(row, "text"), text_of(row, "hint"), text_of(row, "since"),
                             text_of(row, "before"), text_of(row, "capability_below"),
                             text_of(row, "answer") == "refused", words_of(row, "vendors"),
                             words_of(row, "architectures"), words_of(row, "capabilities_other_than"),
                             words_of(row, "kinds"), words_of(row, "families"), words_of(row, "weights")});
    });
  } catch (const toml::parse_error& error) {
    return fail(ErrorCode::internal, fmt::format("data/{}: {}", kFile, error.description()));
  }
  return facts;
}

Result<const Facts*> facts() {
  static const Result<Facts> read = read_facts();
  if (!read) return tl::unexpected(read.error());
  return &*read;
}

const EngineRow* row_of(const Facts& known, Engine engine) {
  const auto found = std::find_if(known.engines.begin(), known.engines.end(),
                                  [&](const EngineRow& row) { return row.name == name_of(engine); });
  return found == known.engines.end() ? nullptr : &*found;
}

bool holds(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string_view name_of_kind(model::ModelKind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"decoder",        "encoder",      "encoder_decoder",
                                                      "vision_encoder", "dual_encoder", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

// "gptq" of "gptq-int4-g128"; "gguf" of "Q4_K_M" and "IQ4_XS"; "bf16".
std::string weight_class(const model::Model& model) {
  const std::string format = lower(model.weight_format);
  const auto quantised = [&](std::string_view prefix) {
    return format.starts_with(prefix) && format.size() > prefix.size() &&
           std::isdigit(static_cast<unsigned char>(format[prefix.size()])) != 0;
  };
  if (quantised("q") || quantised("iq") || quantised("tq") || format == "mxfp4_moe") return "gguf";
  return format.substr(0, format.find('-'));
}

bool below(const Hardware& hardware, std::string_view capability) {
  return hardware.vendor == "NVIDIA" && !hardware.capability.empty() &&
         !version_at_least(hardware.capability, capability);
}

// An empty version is the newest one whose behaviour is known.
bool in_time(const Rule& rule, const Facts& known, const Job& job) {
  const EngineRow* row = row_of(known, job.engine);
  const std::string version = job.engine_version.empty() && row != nullptr ? row->newest : job.engine_version;
  return version_at_least(version, rule.since) && (rule.before.empty() || !version_at_least(version, rule.before));
}

bool applies(const Rule& rule, const Facts& known, const model::Model& model, const Job& job) {
  return rule.engine == name_of(job.engine) && in_time(rule, known, job) &&
         (rule.kinds.empty() || holds(rule.kinds, name_of_kind(model.kind))) &&
         (rule.families.empty() || holds(rule.families, model.family)) &&
         (rule.weights.empty() || holds(rule.weights, weight_class(model)));
}

bool matches(const Rule& rule, const Target& target) {
  if (!rule.asks_for_hardware()) return true;
  if (!target.hardware) return false;
  const Hardware& hardware = *target.hardware;
  if (!rule.vendors.empty() && !holds(rule.vendors, hardware.vendor)) return false;
  if (!rule.architectures.empty() && !holds(rule.architectures, target.architecture)) return false;
  if (!rule.capability_below.empty() && !below(hardware, rule.capability_below)) return false;
  return rule.capabilities_other_than.empty() ||
         (!hardware.capability.empty() && !holds(rule.capabilities_other_than, hardware.capability));
}

Status check_cache_types(const EngineRow& row, const Job& job) {
  for (const auto& type : {job.key_type, job.value_type}) {
    if (!type || row.cache_types.empty() || holds(row.cache_types, model::traits(*type).name)) continue;
    return fail(ErrorCode::unsupported,
                fmt::format("{} keeps no keys and values as {}", row.name, model::traits(*type).name),
                fmt::format("types: {}", lower(fmt::format("{}", fmt::join(row.cache_types, ", ")))));
  }
  return {};
}

}  // namespace

Status check_hardware(const model::Model& model, const Job& job, const Target& target) {
  if (!target.hardware) return {};
  const Facts& known = *GW_TRY(facts());
  const EngineRow* row = row_of(known, job.engine);
  if (row != nullptr && !row->vendors.empty() && !holds(row->vendors, target.hardware->vendor))
    return fail(ErrorCode::unsupported, fmt::format("{} does not run on {}", row->name, target.name), row->elsewhere);
  for (const Rule& rule : known.rules)
    if (rule.refuses && rule.asks_for_hardware() && applies(rule, known, model, job) && matches(rule, target))
      return fail(
          ErrorCode::unsupported,
          fmt::format("{}: {}{}", target.name, rule.text,
                      target.hardware->capability.empty() ? std::string()
                                                          : fmt::format(", this is {}", target.hardware->capability)),
          rule.hint);
  return {};
}

Status check_support(const model::Model& model, const Job& job) {
  const Facts& known = *GW_TRY(facts());
  if (const EngineRow* row = row_of(known, job.engine)) GW_TRY(check_cache_types(*row, job));
  for (const Rule& rule : known.rules)
    if (rule.refuses && !rule.asks_for_hardware() && applies(rule, known, model, job))
      return fail(ErrorCode::unsupported,
                  fmt::format("{} ({}{}{}): {}", model.name, model.architecture, model.architecture.empty() ? "" : ", ",
                              model.weight_format, rule.text),
                  rule.hint);
  return {};
}

Engine usual_engine(const model::Model& model) {
  if (model.source == model::Source::gguf || weight_class(model) == "gguf") return Engine::llama_cpp;
  const bool translates = model.kind == model::ModelKind::encoder_decoder && model.family != "whisper";
  Job job;
  job.engine = Engine::vllm;
  return translates || !check_support(model, job) ? Engine::transformers : Engine::vllm;
}

Result<std::vector<std::string>> support_notes(const model::Model& model, const Job& job,
                                               const std::vector<Target>& targets) {
  const Facts& known = *GW_TRY(facts());
  std::vector<std::string> notes;
  for (const Rule& rule : known.rules)
    if (!rule.refuses && applies(rule, known, model, job) &&
        std::any_of(targets.begin(), targets.end(), [&](const Target& target) { return matches(rule, target); }))
      notes.push_back(rule.text);
  const EngineRow* row = row_of(known, job.engine);
  if (row == nullptr || job.engine_version.empty()) return notes;
  if (!version_at_least(row->newest, job.engine_version))
    notes.push_back(fmt::format("{} {} is newer than the newest whose behaviour is known: that of {} is assumed.",
                                row->name, job.engine_version, row->newest));
  else if (!version_at_least(job.engine_version, row->oldest))
    notes.push_back(fmt::format("{} {} is older than the oldest whose behaviour is known: that of {} is assumed.",
                                row->name, job.engine_version, row->oldest));
  return notes;
}

}  // namespace gpuwright::fit
