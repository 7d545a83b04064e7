#include "scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace gpuwright::scorer {
namespace {

constexpr Bytes kAnySize = {std::int64_t{1} << 50};
constexpr std::int64_t kMostGpus = 4096;
constexpr std::int64_t kMostCount = std::int64_t{1} << 31;  // of tokens, sequences, ranks: products stay in 63 bits

std::int64_t pick(const Interval& range, End end) {
  const std::int64_t low = range.low.value_or(range.high.value_or(0)), high = range.high.value_or(low);
  if (end == End::low) return low;
  return end == End::high ? high : low + (high - low) / 2;
}

Result<std::optional<std::int64_t>> picked(const Facts& settings, std::string_view key, End end) {
  const auto text = settings.text(key);
  if (!text) return std::optional<std::int64_t>{};
  return std::optional<std::int64_t>(pick(GW_TRY(parse_range(*text)), end));
}

Result<std::optional<std::int64_t>> at_least_one(const Facts& settings, std::string_view key) {
  const auto value = GW_TRY(settings.integer(key));
  if (value && (*value < 1 || *value > kMostCount))
    return fail(ErrorCode::bad_input, fmt::format("{}: {} is not between 1 and {}", key, *value, kMostCount));
  return value;
}

// "tp2" of a table may stand in gpus, tp or pp; gpu3 says that there are four.
Result<std::int64_t> count_of_gpus(const Row& row) {
  const std::int64_t told = GW_TRY(at_least_one(row.settings, "gpus")).value_or(1);
  const std::int64_t parallel =
      GW_TRY(at_least_one(row.settings, "tp")).value_or(1) * GW_TRY(at_least_one(row.settings, "pp")).value_or(1);
  std::int64_t count = parallel > 1 ? parallel : told;
  if (row.where.size() > 3 && row.where.substr(0, 3) == "gpu")
    count = std::max(count, to_integer(row.where.substr(3)).value_or(0) + 1);
  if (count > kMostGpus) return fail(ErrorCode::bad_input, fmt::format("{} GPUs", count));
  return count;
}

Status place(const Row& row, const catalog::Catalog& catalog, End end, Scenario& scenario) {
  const PlacedTarget placed = GW_TRY(place_one(row, catalog, end));
  scenario.memory_known = placed.memory_known;
  scenario.targets.assign(static_cast<std::size_t>(GW_TRY(count_of_gpus(row))), placed.target);
  return {};
}

Result<std::optional<model::Dtype>> cache_type(const Facts& settings) {
  const auto text = settings.text("kv_type");
  if (!text) return std::optional<model::Dtype>{};
  if (*text == "fp8") return std::optional<model::Dtype>(model::Dtype::f8_e4m3);
  if (*text == "int8") return std::optional<model::Dtype>(model::Dtype::i8);
  if (*text == "fp16") return std::optional<model::Dtype>(model::Dtype::f16);
  const auto dtype = model::dtype_named(*text);
  if (!dtype) return fail(ErrorCode::unsupported, fmt::format("kv_type \"{}\" is not known", printable(*text)));
  return std::optional<model::Dtype>(*dtype);
}

Status read_llama(const Row& row, fit::Job& job) {
  const Facts& settings = row.settings;
  job.llama.ubatch = GW_TRY(at_least_one(settings, "ubatch"));
  job.llama.flash_attention = GW_TRY(settings.flag("flash_attn"));
  job.llama.unified_kv = GW_TRY(settings.flag("unified")).value_or(false);
  job.llama.cpu_moe_layers = GW_TRY(settings.integer("cpu_moe")).value_or(0);
  if (job.llama.cpu_moe_layers > kMostCount)
    return fail(ErrorCode::bad_input, "cpu_moe: more layers than any model has");
  if (const auto mode = GW_TRY(settings.integer("mla")))
    job.llama.mla_mode = static_cast<int>(std::min<std::int64_t>(*mode, 99));
  if (settings.text("offload_layers").value_or("all") != "all")
    job.llama.gpu_layers = GW_TRY(settings.integer("offload_layers"));
  job.context_tokens = GW_TRY(at_least_one(settings, "ctx"));
  job.sequences = GW_TRY(at_least_one(settings, "n_seq")).value_or(GW_TRY(at_least_one(settings, "batch")).value_or(1));
  return {};
}

Status read_vllm(const Row& row, End end, fit::Job& job) {
  const Facts& settings = row.settings;
  job.vllm.gpu_memory_utilization = GW_TRY(settings.number("util"));
  job.vllm.max_batched_tokens = GW_TRY(at_least_one(settings, "max_batched_tokens"));
  job.vllm.max_sequences = GW_TRY(at_least_one(settings, "n_seq"));
  job.vllm.block_size = GW_TRY(at_least_one(settings, "block"));
  if (const auto budget = GW_TRY(picked(settings, "kv_budget", end))) job.vllm.kv_budget = Bytes{*budget};
  job.vllm.mxfp4_backend = settings.text("backend").value_or("");
  job.context_tokens = GW_TRY(at_least_one(settings, "max_len"));
  if (!job.context_tokens) job.context_tokens = GW_TRY(at_least_one(settings, "ctx"));
  job.prompt_tokens = GW_TRY(settings.integer("prompt"));
  job.new_tokens = GW_TRY(settings.integer("new_tokens"));
  job.sequences = GW_TRY(at_least_one(settings, "batch")).value_or(1);
  return {};
}

Status read_transformers(const Row& row, fit::Job& job) {
  const Facts& settings = row.settings;
  if (row.engine == "litgpt") job.transformers.library = "litgpt";
  if (const auto flash = GW_TRY(settings.flag("flash_attn")))
    job.transformers.attention = *flash ? "flash_attention_2" : "eager";
  job.prompt_tokens = GW_TRY(at_least_one(settings, "prompt"));
  job.new_tokens = GW_TRY(at_least_one(settings, "new_tokens"));
  job.context_tokens = GW_TRY(at_least_one(settings, "ctx"));
  job.sequences = GW_TRY(at_least_one(settings, "batch")).value_or(1);
  return {};
}

// "b4477" and "0.7.2" are the engine's own; of "transformers 4.46.0; torch 2.3.1" the piece that names the engine.
std::string own_version(const Row& row) {
  for (std::string_view piece : split(row.engine_version, ';')) {
    piece = trim(piece);
    const std::size_t space = piece.find(' ');
    if (space == std::string_view::npos) return std::string(piece);
    if (lower(piece.substr(0, space)) == lower(row.engine)) return std::string(trim(piece.substr(space + 1)));
  }
  return {};
}

std::string spaced(std::string_view name) {
  std::string text;
  for (char c : lower(name)) text += c == '-' || c == '_' ? ' ' : c;
  for (std::string_view series : {"rtx", "gtx"})
    if (text.size() > 3 && text.substr(0, 3) == series && text[3] != ' ') text.insert(3, " ");
  return text;
}

// Every word of the name but the memory ("80gb") occurs in the accelerator's name or id.
bool bears_name(const catalog::Accelerator& accelerator, std::string_view spaced_name) {
  std::string words;
  for (char c : lower(accelerator.name) + ' ' + lower(accelerator.id)) words += c == '-' ? ' ' : c;
  words = ' ' + words + ' ';
  bool has_number = false;  // "RTX" alone names a series, not a card
  for (std::string_view word : split(spaced_name, ' ')) {
    if (word.ends_with("gb")) {
      const auto gigabytes = to_number(word.substr(0, word.size() - 2));
      if (gigabytes && std::abs(accelerator.nominal_memory.gib() - *gigabytes) > 0.12 * *gigabytes) return false;
      if (gigabytes) continue;
    }
    if (words.find(fmt::format(" {} ", word)) == std::string::npos) return false;
    has_number = has_number || word.find_first_of("0123456789") != std::string_view::npos;
  }
  return has_number;
}

}  // namespace

const catalog::Accelerator* find_gpu(const catalog::Catalog& catalog, std::string_view name) {
  const std::string text = spaced(name);
  if (const auto found = catalog.find(text)) return *found;
  for (const catalog::Accelerator& accelerator : catalog.accelerators())
    if (accelerator.vendor == "NVIDIA" && bears_name(accelerator, text)) return &accelerator;
  return nullptr;
}

Result<PlacedTarget> place_one(const Row& row, const catalog::Catalog& catalog, End end) {
  const auto name = row.settings.text("gpu");
  const catalog::Accelerator* known = name ? find_gpu(catalog, *name) : nullptr;
  PlacedTarget placed{known != nullptr ? fit::target_from(*known) : fit::Target{}, known != nullptr};
  fit::Target& target = placed.target;
  if (known == nullptr) {
    target.name = name ? std::string(*name) : "GPU";
    target.total = target.free = kAnySize;
  }
  const auto total = GW_TRY(picked(row.settings, "gpu_mem", end));
  const auto free = GW_TRY(picked(row.settings, "free_mem", end));
  if (total) target.total = target.free = Bytes{*total};
  if (free) target.free = Bytes{*free};
  placed.memory_known = placed.memory_known || total;
  return placed;
}

Result<fit::EngineChoice> engine_of(const Row& row) {
  fit::EngineChoice choice = GW_TRY(fit::engine_named(row.engine));
  choice.version = own_version(row);
  return choice;
}

Result<Scenario> scenario_of(const Row& row, const catalog::Catalog& catalog, End end) {
  const fit::EngineChoice engine = GW_TRY(engine_of(row));
  Scenario scenario;
  fit::Job& job = scenario.job;
  job.engine = engine.engine;
  job.engine_version = engine.version;
  // Weights do not depend on the cache, whose type may be one that only a fork has.
  if (row.component != "weights") job.key_type = job.value_type = GW_TRY(cache_type(row.settings));
  job.tensor_parallel = static_cast<int>(std::min(GW_TRY(at_least_one(row.settings, "tp")).value_or(1), kMostGpus));
  job.pipeline_parallel = static_cast<int>(std::min(GW_TRY(at_least_one(row.settings, "pp")).value_or(1), kMostGpus));
  GW_TRY(place(row, catalog, end, scenario));
  switch (job.engine) {
    case fit::Engine::llama_cpp:
    case fit::Engine::ollama:
      GW_TRY(read_llama(row, job));
      break;
    case fit::Engine::vllm:
    case fit::Engine::sglang:
      GW_TRY(read_vllm(row, end, job));
      break;
    case fit::Engine::transformers:
      GW_TRY(read_transformers(row, job));
      break;
  }
  return scenario;
}

}  // namespace gpuwright::scorer
