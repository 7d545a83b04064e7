#include "cli/fit_train.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "cli/fit_request.h"
#include "fit/emit/emit.h"
#include "fit/strategy/words.h"

namespace gpuwright::cli {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 26;
constexpr std::int64_t kMostSequences = 1 << 20;
constexpr std::int64_t kMostGpus = 1024;

using fit::Precision;
using fit::Sharding;
using fit::TrainingEngine;
using fit::TrainingJob;
using fit::TrainingMethod;

Result<TrainingMethod> method_named(std::string_view name) {
  if (const auto method = fit::training_method_named(name)) return *method;
  return fail(ErrorCode::bad_input, fmt::format("\"{}\" is no way to train", name), "full, lora, dora or qlora");
}

// What the engine does when nobody says otherwise.
void take_defaults(TrainingJob& job) {
  const bool unsloth = job.engine == TrainingEngine::unsloth;
  job.precision = fit::usual_precision(job.engine, job.method);
  job.optimizer = unsloth ? fit::Optimizer::adamw_8bit : fit::Optimizer::adamw_fused;
  job.checkpointing = unsloth ? fit::Checkpointing::offloaded : fit::Checkpointing::none;
  job.fused_kernels = unsloth;
  if (job.engine == TrainingEngine::fsdp) job.sharding.kind = Sharding::fsdp;
}

// ---------------------------------------------------------------- each lays what was said over the job

void mark(const Arguments& arguments, std::string_view option, bool& flag, bool value = true) {
  if (arguments.has(option)) flag = value;
}

Status read_batch(const Arguments& arguments, TrainingJob& job) {
  job.micro_batch = GW_TRY(arguments.integer("--batch", 1, kMostSequences)).value_or(job.micro_batch);
  job.gradient_accumulation =
      GW_TRY(arguments.integer("--accumulate", 1, kMostSequences)).value_or(job.gradient_accumulation);
  job.sequence = GW_TRY(arguments.integer("--sequence", 1, kMostTokens))
                     .value_or(GW_TRY(arguments.integer("--context", 1, kMostTokens)).value_or(job.sequence));
  mark(arguments, "--varying-lengths", job.varying_lengths);
  return {};
}

Status read_numbers(const Arguments& arguments, TrainingJob& job) {
  if (const auto name = arguments.value("--precision")) job.precision = fit::precision_named(*name).value();
  if (const auto name = arguments.value("--optimizer")) job.optimizer = fit::optimizer_named(*name).value();
  mark(arguments, "--optimizer-in-backward", job.optimizer_in_backward);
  mark(arguments, "--compile", job.compiled);
  mark(arguments, "--float8", job.float8_linears);
  return {};
}

Status read_activations(const Arguments& arguments, TrainingJob& job) {
  if (const auto name = arguments.value("--checkpointing")) job.checkpointing = fit::checkpointing_named(*name).value();
  mark(arguments, "--offload-activations", job.activation_offload);
  if (const auto kernel = arguments.value("--attention")) job.attention = *kernel;
  mark(arguments, "--fused-kernels", job.fused_kernels);
  mark(arguments, "--chunked-loss", job.chunked_cross_entropy);
  if (const auto chunks = GW_TRY(arguments.integer("--chunked-loss", 1, kMostTokens)))
    job.cross_entropy_chunks = chunks;
  return {};
}

Status read_adapters(const Arguments& arguments, TrainingJob& job) {
  job.lora.rank = GW_TRY(arguments.integer("--rank", 1, 65536)).value_or(job.lora.rank);
  if (const auto names = arguments.value("--targets")) {
    job.lora.targets.clear();
    for (const std::string_view name : split(*names, ',')) job.lora.targets.emplace_back(trim(name));
  }
  if (const auto type = arguments.value("--adapter-type"))
    job.lora.adapter_dtype = model::dtype_named(*type).value_or(model::Dtype::f32);
  mark(arguments, "--train-embeddings", job.lora.trainable_embeddings);
  mark(arguments, "--lora-dropout", job.lora.dropout);
  return {};
}

// DeepSpeed steps on the CPU from ZeRO-1 on and keeps weights there under ZeRO-3 (zero/config.py); without a stage the
// least one that gives room for it is meant.
Status settle_offload(const Arguments& arguments, TrainingJob& job) {
  fit::ShardingOptions& sharding = job.sharding;
  if (job.engine != TrainingEngine::deepspeed || !arguments.has("--offload")) return {};
  const bool parameters = sharding.offload_parameters;
  if (sharding.kind == Sharding::none && !arguments.has("--zero"))
    sharding.kind = parameters ? Sharding::zero3 : Sharding::zero2;
  if (sharding.kind == Sharding::none || (parameters && sharding.kind != Sharding::zero3))
    return fail(ErrorCode::bad_input,
                fmt::format("--offload {} needs {} of DeepSpeed", *arguments.value("--offload"),
                            parameters ? "ZeRO-3" : "ZeRO-1, 2 or 3"),
                parameters ? "--zero 3" : "--zero 2");
  return {};
}

Status read_sharding(const Arguments& arguments, TrainingJob& job) {
  fit::ShardingOptions& sharding = job.sharding;
  constexpr Sharding kStages[] = {Sharding::none, Sharding::zero1, Sharding::zero2, Sharding::zero3};
  const auto stage = GW_TRY(arguments.integer("--zero", 0, 3));
  if (stage && arguments.has("--fsdp")) return fail(ErrorCode::bad_input, "--zero and --fsdp exclude each other");
  if (stage) sharding.kind = kStages[*stage];
  if (arguments.has("--fsdp"))
    sharding.kind = arguments.value("--fsdp") == "grad-only" ? Sharding::fsdp_grad_only : Sharding::fsdp;
  if (const auto offload = arguments.value("--offload")) {
    sharding.offload_optimizer = offload == "optimizer" || offload == "both";
    sharding.offload_parameters = offload == "parameters" || offload == "both";
  }
  GW_TRY(settle_offload(arguments, job));
  mark(arguments, "--no-overlap-comm", sharding.overlap_comm, false);
  if (const auto elements = GW_TRY(arguments.integer("--bucket-elements", 1, std::int64_t{1} << 40)))
    sharding.bucket_elements = elements;
  mark(arguments, "--no-limit-all-gathers", sharding.limit_all_gathers, false);
  mark(arguments, "--load-whole", sharding.partitioned_at_load, false);
  return {};
}

Status read_degree(const Arguments& arguments, std::string_view option, int& degree) {
  if (const auto number = GW_TRY(arguments.integer(option, 1, kMostGpus))) degree = static_cast<int>(*number);
  return {};
}

Status read_parallelism(const Arguments& arguments, TrainingJob& job) {
  GW_TRY(read_degree(arguments, "--data-parallel", job.data_parallel));
  GW_TRY(read_degree(arguments, "--tensor-parallel", job.tensor_parallel));
  GW_TRY(read_degree(arguments, "--pipeline-parallel", job.pipeline_parallel));
  GW_TRY(read_degree(arguments, "--context-parallel", job.context_parallel));
  mark(arguments, "--sequence-parallel", job.sequence_parallel);
  mark(arguments, "--interleaved-pipeline", job.interleaved_pipeline);
  return read_degree(arguments, "--gpus-per-node", job.gpus_per_node);
}

// The engine that has what the options name: ZeRO is DeepSpeed's, and so are files for DeepSpeed.
Result<fit::TrainingEngineChoice> engine_of(const Arguments& arguments) {
  if (const auto name = arguments.value("--train-engine")) return fit::training_engine_named(*name);
  const bool zero = arguments.has("--zero") && arguments.value("--zero") != "0";
  const auto target = arguments.value("--emit");
  if (zero || target == "deepspeed" || (arguments.has("--offload") && !arguments.has("--fsdp") && target != "fsdp"))
    return fit::TrainingEngineChoice{TrainingEngine::deepspeed, ""};
  if (arguments.has("--fsdp") || target == "fsdp") return fit::TrainingEngineChoice{TrainingEngine::fsdp, ""};
  const auto split = GW_TRY(arguments.integer("--pipeline-parallel", 1, kMostGpus)).value_or(1) *
                     GW_TRY(arguments.integer("--tensor-parallel", 1, kMostGpus)).value_or(1);
  return fit::TrainingEngineChoice{split > 1 ? TrainingEngine::megatron : TrainingEngine::transformers, ""};
}

}  // namespace

std::vector<Option> training_options() {
  const std::string group(kTrainingOptions), sharding(kShardingOptions), adapters(kAdapterOptions);
  const auto option = [](const std::string& in, std::string name, std::string value, std::string help,
                         std::vector<std::string> choices = {}) {
    return Option{.name = std::move(name),
                  .value = std::move(value),
                  .help = std::move(help),
                  .choices = std::move(choices),
                  .group = in};
  };
  std::vector<Option> options = {
      option(group, "--train", "METHOD", "fine-tune instead of serving", {"full", "lora", "dora", "qlora"}),
      option(group, "--train-engine", "ENGINE[@VERSION]",
             "transformers, deepspeed, fsdp, torchtune, torchtitan, unsloth, litgpt, megatron or gpuwright"),
      option(group, "--sequence", "TOKENS", "longest sample, padded or packed (default 2048)"),
      option(group, "--accumulate", "N", "micro-batches of --batch sequences a step (default 1)"),
      option(group, "--varying-lengths", "", "samples are neither packed nor padded to one length"),
      option(group, "--precision", "RECIPE", "how weights, gradients and states are kept", fit::precision_names()),
      option(group, "--optimizer", "NAME", "default adamw-fused", fit::optimizer_names()),
      option(group, "--optimizer-in-backward", "", "step each weight as its gradient arrives"),
      option(group, "--checkpointing", "WHICH", "what is recomputed in backward",
             {"none", "selective", "full", "offloaded"}),
      option(group, "--offload-activations", "", "activations wait in host memory"),
      option(group, "--chunked-loss", "CHUNKS", "cross-entropy without the whole logits"),
      option(group, "--fused-kernels", "", "norms and SwiGLU that keep less (Liger, unsloth)"),
      option(group, "--compile", "", "torch.compile"),
      option(group, "--float8", "", "linears in float8"),
      option(group, "--strategy", "WHICH", "auto: find the plan that fits and costs the least time", {"auto"}),
      option(group, "--global-batch", "N", "sequences of one step over all GPUs, for --strategy (default 16)"),
      option(group, "--allow", "METHODS", "lora, qlora: methods that --strategy may fall back to"),

      option(adapters, "--rank", "R", "of the adapters (default 8)"),
      option(adapters, "--targets", "A,B,...", "modules that get adapters, or all-linear (default: the engine's)"),
      option(adapters, "--adapter-type", "TYPE", "storage of the adapters (default f32)", {"f32", "bf16", "f16"}),
      option(adapters, "--train-embeddings", "", "embeddings and head are trained whole"),
      option(adapters, "--lora-dropout", "", "dropout on the adapters' inputs"),

      option(sharding, "--zero", "STAGE", "DeepSpeed ZeRO", {"0", "1", "2", "3"}),
      option(sharding, "--fsdp", "WHAT", "shard weights, gradients and states, or all but weights",
             {"full", "grad-only"}),
      option(sharding, "--offload", "WHAT", "what lives in host memory", {"optimizer", "parameters", "both"}),
      option(sharding, "--data-parallel", "N", "replicas (default: all GPUs that are left)"),
      option(sharding, "--context-parallel", "N", "split every sequence over N GPUs"),
      option(sharding, "--sequence-parallel", "", "split norms and dropouts beside tensor parallelism"),
      option(sharding, "--interleaved-pipeline", "", "several stages on each GPU"),
      option(sharding, "--gpus-per-node", "N", "GPUs of one machine (default 8)"),
      option(sharding, "--bucket-elements", "N", "ZeRO's reduce and all-gather buckets (default 5e8)"),
      option(sharding, "--no-overlap-comm", "", "ZeRO: one bucket instead of two"),
      option(sharding, "--no-limit-all-gathers", "", "FSDP: gather as far ahead as it goes"),
      option(sharding, "--load-whole", "", "every GPU loads the whole model before it is shared out"),
  };
  for (Option& each : options) each.optional_value = each.name == "--chunked-loss" || each.name == "--fsdp";
  return options;
}

bool wants_training(const Arguments& arguments) {
  return arguments.has("--train");
}

Result<TrainingJob> read_training_job(const Arguments& arguments) {
  TrainingJob job;
  job.method = GW_TRY(method_named(arguments.value("--train").value_or("full")));
  const fit::TrainingEngineChoice choice = GW_TRY(engine_of(arguments));
  job.engine = choice.engine;
  job.engine_version = choice.version;
  take_defaults(job);
  return lay_over(arguments, std::move(job));
}

Result<TrainingJob> lay_over(const Arguments& arguments, TrainingJob job) {
  if (const auto name = arguments.value("--train")) job.method = GW_TRY(method_named(*name));
  if (const auto name = arguments.value("--train-engine")) {
    const fit::TrainingEngineChoice choice = GW_TRY(fit::training_engine_named(*name));
    job.engine = choice.engine;
    job.engine_version = choice.version;
  }
  GW_TRY(read_batch(arguments, job));
  GW_TRY(read_numbers(arguments, job));
  GW_TRY(read_activations(arguments, job));
  GW_TRY(read_adapters(arguments, job));
  GW_TRY(read_sharding(arguments, job));
  GW_TRY(read_parallelism(arguments, job));
  if (const auto text = arguments.value("--reserve")) job.reserve = GW_TRY(parse_bytes(*text));
  return job;
}

void suit_attention(const std::vector<fit::Target>& targets, TrainingJob& job) {
  if (job.attention != "flash_attention_2") return;
  const bool runs = std::all_of(targets.begin(), targets.end(), [](const fit::Target& target) {
    if (!target.hardware || target.hardware->vendor == "AMD") return true;
    constexpr double kAmpere = 8.0;  // Dao-AILab/flash-attention README: Ampere, Ada, Hopper; AMD by Composable Kernel
    return target.hardware->vendor == "NVIDIA" && to_number(target.hardware->capability).value_or(kAmpere) >= kAmpere;
  });
  if (!runs) job.attention = "sdpa";
}

std::int64_t gpus_wanted(const TrainingJob& job) {
  return std::int64_t{job.data_parallel} * job.tensor_parallel * job.pipeline_parallel * job.context_parallel;
}

void take_gpus(TrainingJob& job, bool data_parallel_told, std::size_t gpus) {
  const auto split = static_cast<std::size_t>(job.tensor_parallel) * static_cast<std::size_t>(job.pipeline_parallel) *
                     static_cast<std::size_t>(job.context_parallel);
  if (!data_parallel_told && gpus > split && gpus % split == 0) job.data_parallel = static_cast<int>(gpus / split);
}

Result<std::optional<fit::StrategyRequest>> read_strategy(const Arguments& arguments, const TrainingJob& job,
                                                          std::size_t gpus) {
  if (!arguments.has("--strategy")) return std::optional<fit::StrategyRequest>{};
  constexpr std::int64_t kUsualBatch = 16;
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(gpus, 1));
  const bool batch_told = arguments.has("--batch") || arguments.has("--accumulate");
  const std::int64_t usual =
      batch_told ? job.micro_batch * job.gradient_accumulation * job.data_parallel : pad_to(kUsualBatch, count);
  fit::StrategyRequest request;
  request.job = job;
  request.global_batch = GW_TRY(arguments.integer("--global-batch", 1, kMostSequences)).value_or(usual);
  request.strict = arguments.has("--strict");
  fit::Freedom& freedom = request.freedom;
  const auto open = [&](std::initializer_list<std::string_view> options) {
    return std::none_of(options.begin(), options.end(), [&](std::string_view name) { return arguments.has(name); });
  };
  freedom.numerics = open({"--precision"});
  freedom.optimizer = open({"--optimizer"});
  freedom.checkpointing = open({"--checkpointing"});
  freedom.loss = open({"--chunked-loss"});
  freedom.engine = open({"--train-engine"});
  freedom.sharding = open({"--zero", "--fsdp", "--offload"});
  freedom.parallelism = open({"--tensor-parallel", "--pipeline-parallel", "--data-parallel"});
  freedom.micro_batch = open({"--batch"});
  if (const auto name = arguments.value("--emit")) {
    const fit::EmitTarget target = GW_TRY(fit::emit_target_named(*name));
    if (fit::is_training(target))
      request.allowed = [target, count](const TrainingJob& plan) {
        return fit::can_emit(target, plan, static_cast<int>(count)).has_value();
      };
    freedom.engine = freedom.engine && target != fit::EmitTarget::deepspeed && target != fit::EmitTarget::fsdp;
  }
  if (const auto names = arguments.value("--allow"))
    for (const std::string_view name : split(*names, ',')) {
      const auto method = fit::training_method_named(trim(name));
      if (!method || *method == TrainingMethod::full)
        return fail(ErrorCode::bad_input, fmt::format("--allow takes lora, dora and qlora, not '{}'", trim(name)));
      if (*method != job.method) freedom.also.push_back(*method);
    }
  return std::optional(std::move(request));
}

}  // namespace gpuwright::cli
