#include "training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "fit/training/solve.h"
#include "model/config.h"
#include "model/quantize.h"
#include "reading.h"
#include "resolve_model.h"
#include "scenario.h"

namespace gpuwright::scorer {
namespace {

using fit::Checkpointing;
using fit::ComponentKind;
using fit::Optimizer;
using fit::Precision;
using fit::Sharding;
using fit::TrainingEngine;
using fit::TrainingJob;
using fit::TrainingMethod;

constexpr std::int64_t kMost = std::int64_t{1} << 26;

Result<std::optional<std::int64_t>> count(const Facts& settings, std::string_view key) {
  const auto value = GW_TRY(settings.integer(key));
  if (value && (*value < 1 || *value > kMost))
    return fail(ErrorCode::bad_input, fmt::format("{}: {} is not between 1 and {}", key, *value, kMost));
  return value;
}

Result<int> degree(const Facts& settings, std::string_view key) {
  return static_cast<int>(std::min<std::int64_t>(GW_TRY(count(settings, key)).value_or(1), 1 << 16));
}

Result<bool> is_set(const Facts& settings, std::string_view key) {
  return GW_TRY(settings.flag(key)).value_or(false);
}

template <class T, std::size_t N>
std::optional<T> word(const std::array<std::pair<std::string_view, T>, N>& words, std::string_view text) {
  for (const auto& [name, value] : words)
    if (name == text) return value;
  return std::nullopt;
}

// "transformers+deepspeed", "fsdp+bnb", "ms-swift 1.5": the part that decides how memory is laid out.
Result<TrainingEngine> training_engine_of(const Row& row) {
  const std::string text = lower(row.engine);
  constexpr std::array<std::pair<std::string_view, TrainingEngine>, 14> kParts = {{
      {"unsloth", TrainingEngine::unsloth},
      {"litgpt", TrainingEngine::litgpt},
      {"lit-gpt", TrainingEngine::litgpt},
      {"torchtune", TrainingEngine::torchtune},
      {"torchtitan", TrainingEngine::torchtitan},
      {"megatron", TrainingEngine::megatron},
      {"flagscale", TrainingEngine::megatron},
      {"gpuwright", TrainingEngine::gpuwright},
      {"swift", TrainingEngine::transformers},
      {"peft", TrainingEngine::transformers},
      {"trl", TrainingEngine::transformers},
      {"transformers", TrainingEngine::transformers},
      {"deepspeed", TrainingEngine::deepspeed},
      {"fsdp", TrainingEngine::fsdp},
  }};
  for (const auto& [name, engine] : kParts)
    if (text.find(name) != std::string::npos) return engine;
  return GW_TRY(fit::training_engine_named(text)).engine;
}

Result<TrainingMethod> method_of(const Row& row) {
  constexpr std::array<std::pair<std::string_view, TrainingMethod>, 4> kMethods = {{{"full", TrainingMethod::full},
                                                                                    {"lora", TrainingMethod::lora},
                                                                                    {"dora", TrainingMethod::dora},
                                                                                    {"qlora", TrainingMethod::qlora}}};
  if (row.settings.has("method"))
    return fail(ErrorCode::unsupported,
                fmt::format("the method {} is not predicted", printable(row.settings.text("method").value_or(""))));
  const auto method = word(kMethods, row.mode);
  if (!method) return fail(ErrorCode::bad_input, fmt::format("unknown mode {}", printable(row.mode)));
  return *method;
}

Status read_lengths(const Facts& settings, TrainingJob& job) {
  job.micro_batch = GW_TRY(count(settings, "micro_batch")).value_or(1);
  job.gradient_accumulation = GW_TRY(count(settings, "grad_accum")).value_or(1);
  const auto exact = GW_TRY(count(settings, "seq")), cap = GW_TRY(count(settings, "max_seq"));
  job.sequence = exact ? *exact : cap.value_or(1);
  job.varying_lengths = !exact && cap && !GW_TRY(is_set(settings, "packed"));
  return {};
}

// transformers' documentation of memory on one GPU measured a V100 before there were fused attention kernels.
bool is_of_2021(const Row& row) {
  return row.engine == "transformers" && row.engine_version.empty() &&
         row.settings.text("gpu").value_or("").starts_with("V100");
}

bool is_deepspeed(const Row& row) {
  return row.settings.has("zero") || row.engine == "deepspeed";
}

Result<Precision> precision_of(const Row& row, TrainingEngine engine) {
  const std::string_view text = row.settings.text("precision").value_or("bf16");
  const bool sixteen = text == "bf16" || text == "fp16" || text == "bf16-amp" || text == "fp16-amp";
  if (engine == TrainingEngine::megatron && sixteen) return Precision::mixed_megatron;
  if (is_deepspeed(row) && sixteen) return Precision::mixed_deepspeed;
  constexpr std::array<std::pair<std::string_view, Precision>, 5> kPrecisions = {{{"bf16", Precision::pure_bf16},
                                                                                  {"fp16", Precision::pure_fp16},
                                                                                  {"bf16-amp", Precision::amp_bf16},
                                                                                  {"fp16-amp", Precision::amp_fp16},
                                                                                  {"fp32", Precision::fp32}}};
  const auto precision = word(kPrecisions, text);
  if (!precision) return fail(ErrorCode::unsupported, fmt::format("the precision \"{}\"", printable(text)));
  // Autocast over weights that are stored in 16 bit is pure 16-bit training.
  const std::string_view stored = row.settings.text("weight_dtype").value_or("");
  if (*precision == Precision::amp_bf16 && row.mode == "full" && (stored == "bf16" || stored == "fp16"))
    return Precision::pure_bf16;
  return *precision;
}

Result<Optimizer> optimizer_of(const Row& row, TrainingEngine engine) {
  constexpr std::array<std::pair<std::string_view, Optimizer>, 12> kOptimizers = {{
      {"adamw", Optimizer::adamw},
      {"adam", Optimizer::adamw},
      {"adamw-fused", Optimizer::adamw_fused},
      {"paged-adamw", Optimizer::adamw_paged},
      {"adamw8bit", Optimizer::adamw_8bit},
      {"adamw8bit-bnb", Optimizer::adamw_8bit},
      {"adamw8bit-ao", Optimizer::adamw_8bit},
      {"adamw4bit-ao", Optimizer::adamw_4bit},
      {"adamwfp8-ao", Optimizer::adamw_fp8},
      {"adam8bit-bnb", Optimizer::adamw_8bit},
      {"adafactor", Optimizer::adafactor},
      {"sgd", Optimizer::sgd},
  }};
  // Unsloth's notebooks and tables go with adamw_8bit.
  const std::string_view text =
      row.settings.text("optimizer").value_or(engine == TrainingEngine::unsloth ? "adamw8bit" : "adamw");
  const auto optimizer = word(kOptimizers, text);
  if (!optimizer) return fail(ErrorCode::unsupported, fmt::format("the optimizer \"{}\"", printable(text)));
  // Trainer's own AdamW, its default until 2023, steps tensor by tensor: the rows of that time tell no version.
  if (*optimizer == Optimizer::adamw && is_of_2021(row)) return Optimizer::adamw_loop;
  return *optimizer;
}

Status read_memory_options(const Row& row, TrainingJob& job) {
  const Facts& settings = row.settings;
  constexpr std::array<std::pair<std::string_view, Checkpointing>, 4> kModes = {
      {{"none", Checkpointing::none},
       {"full", Checkpointing::full},
       {"selective", Checkpointing::selective},
       {"unsloth", Checkpointing::offloaded}}};
  const auto mode = word(kModes, settings.text("checkpointing").value_or("none"));
  if (!mode) return fail(ErrorCode::unsupported, "this kind of checkpointing");
  job.checkpointing = *mode;
  job.activation_offload = GW_TRY(is_set(settings, "activation_offload"));
  const auto flash = GW_TRY(settings.flag("flash_attn"));
  job.attention = flash ? (*flash ? "flash_attention_2" : "eager") : is_of_2021(row) ? "eager" : "sdpa";
  if (!flash && (job.engine == TrainingEngine::torchtune || job.engine == TrainingEngine::torchtitan ||
                 job.engine == TrainingEngine::unsloth || job.engine == TrainingEngine::megatron))
    job.attention = "flash_attention_2";
  job.fused_kernels = job.engine == TrainingEngine::unsloth || job.engine == TrainingEngine::megatron;
  job.compiled = GW_TRY(is_set(settings, "compile"));
  job.float8_linears = GW_TRY(is_set(settings, "fp8"));
  job.chunked_cross_entropy = GW_TRY(is_set(settings, "chunked_ce"));
  job.optimizer_in_backward = GW_TRY(is_set(settings, "optimizer_in_bwd"));
  return {};
}

Status read_adapters(const Row& row, TrainingJob& job) {
  const Facts& settings = row.settings;
  job.lora.rank = GW_TRY(count(settings, "lora_rank")).value_or(8);
  job.lora.trainable_embeddings = GW_TRY(is_set(settings, "trainable_embeddings"));
  if (const auto targets = settings.text("lora_targets"))
    for (const std::string_view name : split(*targets, '+')) job.lora.targets.emplace_back(name);
  const std::string_view dtype = settings.text("adapter_dtype").value_or("");
  // Recipes that convert the whole model to bf16 convert the adapters with it; PEFT leaves them in fp32.
  const bool narrow = job.engine == TrainingEngine::torchtune || job.engine == TrainingEngine::litgpt ||
                      job.engine == TrainingEngine::fsdp;
  job.lora.adapter_dtype =
      dtype == "bf16" || dtype == "fp16" || (dtype.empty() && narrow) ? model::Dtype::bf16 : model::Dtype::f32;
  return {};
}

Status read_sharding(const Row& row, TrainingJob& job) {
  const Facts& settings = row.settings;
  const auto stage = GW_TRY(settings.integer("zero"));
  if (stage && *stage >= 1 && *stage <= 3)
    job.sharding.kind = *stage == 1 ? Sharding::zero1 : *stage == 2 ? Sharding::zero2 : Sharding::zero3;
  const std::string_view fsdp = settings.text("fsdp").value_or("0");
  if (fsdp == "1") job.sharding.kind = Sharding::fsdp;
  job.sharding.offload_optimizer = GW_TRY(is_set(settings, "offload_optimizer"));
  job.sharding.offload_parameters = GW_TRY(is_set(settings, "offload_param"));
  job.sharding.overlap_comm = GW_TRY(settings.flag("overlap_comm")).value_or(true);
  job.sharding.limit_all_gathers = GW_TRY(settings.flag("limit_all_gathers")).value_or(true);
  job.sharding.partitioned_at_load = GW_TRY(settings.flag("zero_init")).value_or(true);
  job.sharding.bucket_elements = GW_TRY(settings.integer("buckets"));
  if (job.sharding.bucket_elements &&
      (*job.sharding.bucket_elements < 1 || *job.sharding.bucket_elements > std::int64_t{1} << 40))
    return fail(ErrorCode::bad_input, "buckets: no such size");
  job.tensor_parallel = GW_TRY(degree(settings, "tp"));
  job.pipeline_parallel = GW_TRY(degree(settings, "pp"));
  job.context_parallel = GW_TRY(degree(settings, "cp"));
  const auto gpus = GW_TRY(count(settings, "gpus"));
  const int model_parallel = job.tensor_parallel * job.pipeline_parallel * job.context_parallel;
  // One model laid over the cards layer by layer (device_map) is a pipeline of one micro-batch.
  if (settings.text("split").value_or("") == "layer" && gpus) {
    job.pipeline_parallel = static_cast<int>(*gpus);
    return {};
  }
  const std::int64_t rest = std::max<std::int64_t>(1, gpus.value_or(model_parallel) / std::max(1, model_parallel));
  job.data_parallel =
      settings.has("dp") ? GW_TRY(degree(settings, "dp")) : static_cast<int>(std::min<std::int64_t>(rest, 1 << 16));
  job.sequence_parallel =
      GW_TRY(settings.flag("sp")).value_or(job.engine == TrainingEngine::torchtitan && job.tensor_parallel > 1);
  job.pipeline_stage =
      static_cast<int>(std::clamp<std::int64_t>(GW_TRY(settings.integer("stage")).value_or(0), 0, 4095));
  job.interleaved_pipeline = settings.text("pp_schedule").value_or("") == "interleaved-1f1b";
  return {};
}

std::string base_format(const Row& row) {
  const std::string text(row.settings.text("quant").value_or(""));
  // torchao's NF4Tensor and the checkpoints that Unsloth loads quantise their scales, too.
  if (text == "torchao-nf4" || text == "bnb-4bit") return "bnb-nf4-dq";
  if (text == "wna16-int4" || text == "int4") return "gptq-int4";
  return text;
}

Result<model::Model> base_model(const Row& row, const TrainingJob& job, model::Model model) {
  if (job.method != TrainingMethod::qlora) return model::with_weight_format(model, "bf16");
  std::string format = base_format(row);
  if (format.empty()) format = "bnb-nf4";
  return model::with_weight_format(model, format);
}

// Every rank of an even layout holds the same: one target stands for all, but where stages differ.
std::size_t targets_of(const TrainingJob& job, const Row& row) {
  const bool apart = job.pipeline_parallel > 1 && !row.settings.has("stage");
  if (!apart) return 1;
  return static_cast<std::size_t>(job.pipeline_parallel) * static_cast<std::size_t>(job.data_parallel) *
         static_cast<std::size_t>(job.tensor_parallel) * static_cast<std::size_t>(job.context_parallel);
}

Prediction from(const fit::Range& range) {
  return {range.low.count, range.expected.count, range.high.count};
}

// What the engine's own meter reads, where the source does not say which it was.
Result<InstantFigure> total_of(const Row& row) {
  if (row.meter != "unknown") return total_seen_by(row.meter);
  return InstantFigure([](const fit::GpuEstimate& gpu, const fit::Instant& instant) {
    fit::Range range = instant.total(gpu.meter);
    range.low = std::min(range.low, instant.total(fit::Meter::allocated).expected);
    return range;
  });
}

Result<Prediction> read_total(const Row& row, const TrainingScenario& scenario, const fit::Estimate& answer,
                              const InstantFigure& figure) {
  Row asked = row;
  if (scenario.targets.size() == 1 && row.where != "sum") asked.where = "gpu";  // one stands for each of an even layout
  Prediction prediction = from(GW_TRY(read_gpus(asked, answer, figure)));
  const std::int64_t gpus = GW_TRY(count(row.settings, "gpus")).value_or(1);
  if (row.where != "sum" || scenario.targets.size() != 1) return prediction;
  return Prediction{prediction.low * gpus, prediction.expected * gpus, prediction.high * gpus};
}

Result<Prediction> component_of(const Row& row, const TrainingScenario& scenario, const fit::Estimate& answer) {
  const std::string_view name = row.component, part = row.settings.text("part").value_or("");
  const auto sum = [&](std::vector<ComponentKind> kinds) {
    return read_total(row, scenario, answer, sum_of(std::move(kinds)));
  };
  if (name == "total-peak") return read_total(row, scenario, answer, GW_TRY(total_of(row)));
  if (name == "weights") {
    if (part == "adapter") return sum({ComponentKind::adapters});
    return sum({ComponentKind::weights});
  }
  if (name == "activation") return sum({ComponentKind::activations, ComponentKind::logits});
  if (name == "model-states")
    return sum({ComponentKind::weights, ComponentKind::adapters, ComponentKind::gradients,
                ComponentKind::master_weights, ComponentKind::optimizer_state});
  if (name == "overhead") {
    if (part == "context") return from(GW_TRY(read_gpus(row, answer, outside_of_framework({ComponentKind::runtime}))));
    if (part == "zero-buckets") return sum({ComponentKind::sharding_buffers});
    if (part.starts_with("nccl"))
      return from(GW_TRY(read_gpus(row, answer, outside_of_framework({ComponentKind::communication}))));
    return sum({ComponentKind::runtime, ComponentKind::communication, ComponentKind::allocator});
  }
  return fail(ErrorCode::unsupported, fmt::format("the component \"{}\" of training is not predicted", name));
}

Result<Prediction> longest_sequence(const TrainingScenario& scenario) {
  if (!scenario.memory_known) return fail(ErrorCode::bad_input, "the GPU's memory is not told");
  const auto strict = GW_TRY(fit::largest_sequence(scenario.model, scenario.job, scenario.targets, true));
  const auto expected = GW_TRY(fit::largest_sequence(scenario.model, scenario.job, scenario.targets, false));
  return Prediction{strict.value, expected.value, 2 * expected.value - strict.value};
}

}  // namespace

bool is_training(const Row& row) {
  return row.mode != "inference";
}

Result<TrainingScenario> training_scenario_of(const Row& row, const catalog::Catalog& catalog, End end) {
  TrainingScenario scenario;
  TrainingJob& job = scenario.job;
  job.engine = GW_TRY(training_engine_of(row));
  job.engine_version = row.engine_version;
  job.method = GW_TRY(method_of(row));
  GW_TRY(read_lengths(row.settings, job));
  job.precision = GW_TRY(precision_of(row, job.engine));
  job.optimizer = GW_TRY(optimizer_of(row, job.engine));
  job.loss_in_fp32 = row.settings.text("precision").value_or("") != "fp16";
  GW_TRY(read_memory_options(row, job));
  GW_TRY(read_adapters(row, job));
  GW_TRY(read_sharding(row, job));
  auto resolved = resolve_model(row, Need::weights);
  if (!resolved && row.component == "overhead")
    resolved = ResolvedModel{GW_TRY(model::model_of_size("1B")), {"a model of 1 B stands in"}};
  if (!resolved) return tl::unexpected(resolved.error());
  scenario.notes = resolved->notes;
  scenario.model = GW_TRY(base_model(row, job, std::move(resolved->model)));
  const PlacedTarget placed = GW_TRY(place_one(row, catalog, end));
  scenario.memory_known = placed.memory_known;
  scenario.targets.assign(targets_of(job, row), placed.target);
  return scenario;
}

Result<Answer> predict_training(const Row& row, const catalog::Catalog& catalog) {
  const TrainingScenario scenario = GW_TRY(training_scenario_of(row, catalog, End::middle));
  if (row.component == "max-context") {
    Prediction prediction = GW_TRY(longest_sequence(scenario));
    for (const End end : {End::low, End::high}) {
      const Prediction there = GW_TRY(longest_sequence(GW_TRY(training_scenario_of(row, catalog, end))));
      prediction.low = std::min(prediction.low, there.low);
      prediction.high = std::max(prediction.high, there.high);
    }
    return Answer{prediction, scenario.notes};
  }
  const fit::Estimate answer = GW_TRY(fit::estimate_training(scenario.model, scenario.job, scenario.targets));
  return Answer{GW_TRY(component_of(row, scenario, answer)), scenario.notes};
}

Result<std::string> explain_training(const Row& row, const catalog::Catalog& catalog) {
  const TrainingScenario scenario = GW_TRY(training_scenario_of(row, catalog, End::middle));
  const fit::Estimate answer = GW_TRY(fit::estimate_training(scenario.model, scenario.job, scenario.targets));
  return estimate_text(row, scenario.model, answer, scenario.notes);
}

}  // namespace gpuwright::scorer
