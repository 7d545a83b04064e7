#include "fit/emit/trainer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "fit/emit/names.h"

namespace gpuwright::fit {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kSftFile = "sft.yaml";
constexpr std::string_view kLlamaFactoryFile = "llamafactory.yaml";
constexpr std::string_view kProgramFile = "train.py";

tl::unexpected<Error> cannot(EmitTarget target, std::string_view what, std::string hint = {}) {
  return fail(ErrorCode::unsupported, fmt::format("{} {}", name_of(target), what), std::move(hint));
}

// ---------------------------------------------------------------- what cannot be said

Status check_numbers(const TrainingJob& job, int gpus) {
  for (const std::int64_t count : {job.micro_batch, job.gradient_accumulation, job.sequence,
                                   std::int64_t{job.data_parallel}, std::int64_t{job.gpus_per_node}, job.lora.rank})
    if (count < 1 || count > 1'000'000'000)
      return fail(ErrorCode::bad_input, "batch sizes, sequence, ranks and numbers of GPUs are counted from 1");
  if (job.micro_batch > 1'000'000 || job.gradient_accumulation > 1'000'000 || job.data_parallel > 1'000'000)
    return fail(ErrorCode::bad_input, "the train batch is beyond every dataset");
  if (gpus > 0 && job.data_parallel != gpus)
    return fail(ErrorCode::bad_input,
                fmt::format("data_parallel {} is {} GPUs, not {}", job.data_parallel, job.data_parallel, gpus));
  if (job.data_parallel > job.gpus_per_node && job.data_parallel % job.gpus_per_node != 0)
    return fail(ErrorCode::bad_input,
                fmt::format("{} GPUs do not fill machines of {}", job.data_parallel, job.gpus_per_node));
  return {};
}

Status check_parallelism(EmitTarget target, const TrainingJob& job) {
  if (job.tensor_parallel > 1 || job.pipeline_parallel > 1 || job.context_parallel > 1 || job.sequence_parallel)
    return cannot(target,
                  "is written for data parallelism and sharding only, not for tensor, pipeline or context "
                  "parallelism");
  const Sharding kind = job.sharding.kind;
  if (target == EmitTarget::deepspeed && is_fsdp(kind))
    return cannot(target, "shards by ZeRO and the answer by FSDP", "--emit fsdp or accelerate");
  if (target == EmitTarget::fsdp && !is_fsdp(kind))
    return cannot(target, "shards and the answer does not shard by FSDP", "--emit accelerate");
  if (target == EmitTarget::torchrun && kind == Sharding::fsdp_grad_only && fsdp_version(job) == 1)
    return cannot(target, "shards FSDP1 fully whatever the arguments say (accelerate 1.15)", "--emit fsdp, or FSDP2");
  if (job.sharding.offload_parameters && kind != Sharding::zero3 && !is_fsdp(kind))
    return cannot(target, "offloads parameters only under ZeRO-3 or FSDP");
  if (job.sharding.offload_optimizer && kind == Sharding::none)
    return cannot(target, "offloads optimizer states only under ZeRO or FSDP");
  if (is_fsdp(kind) && job.sharding.offload_optimizer != job.sharding.offload_parameters)
    return cannot(target, "offloads parameters, gradients and states together under FSDP, or none of them");
  return {};
}

Status check_precision(EmitTarget target, const TrainingJob& job) {
  const int stage = zero_stage(job.sharding.kind).value_or(0);
  const bool zero = stage > 0 || target == EmitTarget::deepspeed;
  if (job.precision == Precision::mixed_megatron) return cannot(target, "does not have Megatron's mixed precision");
  if (job.precision == Precision::mixed_deepspeed && !zero)
    return cannot(target, "has DeepSpeed's mixed precision only with ZeRO", "--emit deepspeed");
  const bool pure = job.precision == Precision::pure_bf16 && stage > 0;
  if (zero && job.precision != Precision::mixed_deepspeed && job.precision != Precision::fp32 && !pure)
    return cannot(target, "takes mixed-deepspeed, fp32 or (under ZeRO 1 to 3) pure-bf16 with DeepSpeed",
                  "--precision mixed-deepspeed");
  if (target == EmitTarget::llama_factory && stage == 3 && job.precision == Precision::pure_bf16)
    return cannot(target, "refuses pure-bf16 with ZeRO-3", "--emit deepspeed");
  if (job.method == TrainingMethod::qlora && stage == 3)
    return cannot(target, "cannot shard a 4-bit base with ZeRO-3: bitsandbytes packs it when it is loaded whole",
                  "ZeRO-2 or FSDP");
  if (job.method == TrainingMethod::qlora && job.precision == Precision::fp32)
    return cannot(target, "computes a 4-bit base in 16 bit");
  return {};
}

Status check_memory_savers(EmitTarget target, const TrainingJob& job) {
  if (job.optimizer == Optimizer::adamw_fp8) return cannot(target, "has no fp8 Adam");
  if (job.optimizer == Optimizer::adamw_loop)
    return cannot(target, "has no Adam that steps one tensor after the other since transformers 5");
  if (job.optimizer_in_backward) return cannot(target, "does not step inside backward", "another engine");
  if (job.checkpointing == Checkpointing::selective)
    return cannot(target, "checkpoints every block or none", "full checkpointing");
  if (job.float8_linears) return cannot(target, "is not written with float8 linears");
  const bool own = is_adam_of_torch(job.optimizer);
  if (job.sharding.offload_optimizer && zero_stage(job.sharding.kind) && !own)
    return cannot(target, "steps offloaded states with DeepSpeed's own AdamW for CPUs only");
  const bool offloads = job.activation_offload || job.checkpointing == Checkpointing::offloaded;
  if (target == EmitTarget::llama_factory && offloads)
    return cannot(target, "does not offload activations", "--emit trl");
  if (target == EmitTarget::llama_factory && job.fused_kernels != job.chunked_cross_entropy)
    return cannot(target, "has Liger's kernels and its chunked cross-entropy together or not at all", "--emit trl");
  return {};
}

Status check_attention(EmitTarget target, const TrainingJob& job) {
  if (job.attention == "eager" || job.attention == "sdpa" || job.attention == "flash_attention_2") return {};
  return cannot(target, fmt::format("knows eager, sdpa and flash_attention_2, not '{}'", job.attention));
}

// Other engines keep other things: their answer is not what these libraries would take.
Status check_engine(EmitTarget target, const TrainingJob& job) {
  if (job.engine == TrainingEngine::transformers || job.engine == TrainingEngine::deepspeed ||
      job.engine == TrainingEngine::fsdp)
    return {};
  return cannot(target, fmt::format("starts transformers, and the answer is for {}", name_of(job.engine)),
                "ask for the engine transformers, deepspeed or fsdp");
}

// ---------------------------------------------------------------- how it starts

bool uses_deepspeed(EmitTarget target, const TrainingJob& job) {
  return target == EmitTarget::deepspeed || zero_stage(job.sharding.kind).value_or(0) > 0;
}
int per_machine(const TrainingJob& job) {
  return std::min(job.data_parallel, job.gpus_per_node);
}
int machines(const TrainingJob& job) {
  return job.data_parallel / per_machine(job);
}

// `script` is what runs in each process; `tail` stands behind everything, raw (a variable in double quotes).
std::string torchrun(const TrainingJob& job, const Words& script) {
  Words words{"torchrun", "--nproc-per-node", std::to_string(per_machine(job))};
  std::string several;
  if (machines(job) == 1)
    words.emplace_back("--standalone");
  else
    several =
        fmt::format(" \\\n  --nnodes {} --node-rank \"$NODE_RANK\" --master-addr \"$MASTER_ADDR\" --master-port 29500",
                    machines(job));
  return shell_command(words) + several + " \\\n  " + shell_command(script);
}

std::string accelerate_launch(const TrainingJob& job, const Words& script) {
  std::string text = fmt::format("accelerate launch --config_file {}", kAccelerateFile);
  if (machines(job) > 1) text += " \\\n  --machine_rank \"$NODE_RANK\" --main_process_ip \"$MASTER_ADDR\"";
  return text + " \\\n  " + shell_command(script);
}

std::string deepspeed_launch(const TrainingJob& job, const Words& script) {
  std::string text = fmt::format("deepspeed --num_gpus {} --no_local_rank", per_machine(job));
  if (machines(job) > 1) text += fmt::format(" --num_nodes {} --hostfile hostfile", machines(job));
  return text + " \\\n  --module " + shell_command(script);
}

void note_machines(EmitTarget target, const TrainingJob& job, Emission& emission) {
  if (machines(job) == 1) return;
  emission.notes.push_back(
      target == EmitTarget::deepspeed
          ? fmt::format("Write a hostfile with {} lines 'HOST slots={}'.", machines(job), per_machine(job))
          : fmt::format("Start the command on each of {} machines, with NODE_RANK 0 to {} and MASTER_ADDR the first "
                        "machine's address.",
                        machines(job), machines(job) - 1));
}

void note_choices(const TrainingJob& job, Emission& emission) {
  emission.notes.emplace_back(
      "Learning rate, schedule and epochs are starting values; memory does not depend on them.");
  if (job.cross_entropy_chunks) emission.notes.emplace_back("The number of cross-entropy chunks is the library's own.");
  if (is_fsdp(job.sharding.kind) && !job.sharding.limit_all_gathers)
    emission.notes.emplace_back("FSDP limits all-gathers in flight here; the answer assumed that it does not.");
  if (job.sharding.kind == Sharding::zero3 && !job.sharding.partitioned_at_load)
    emission.notes.emplace_back(
        "transformers partitions weights while it loads them; the answer assumed whole copies.");
}

void add_accelerate(const TrainingJob& job, Emission& emission) {
  emission.files.push_back({std::string(kAccelerateFile), yaml_from(accelerate_config(job))});
}

// ---------------------------------------------------------------- targets

Json sft_arguments(EmitTarget target, const std::string& model, const TrainingJob& job) {
  Json arguments = model_arguments(model, job);
  const Json trainer = trainer_arguments(job);
  for (const auto& [key, value] : trainer.members()) arguments.set(key, value);
  const bool accelerate = target == EmitTarget::accelerate || target == EmitTarget::fsdp;
  if (!accelerate && uses_deepspeed(target, job)) arguments.set("deepspeed", kDeepspeedFile);
  if (!accelerate && is_fsdp(job.sharding.kind))
    arguments.set("fsdp", true).set("fsdp_config", trainer_fsdp_config(job));
  return arguments;
}

std::string started(EmitTarget target, const TrainingJob& job, const Words& arguments) {
  Words module{"trl.scripts.sft"};
  if (target == EmitTarget::deepspeed) {
    module.insert(module.end(), arguments.begin(), arguments.end());
    return deepspeed_launch(job, module);
  }
  module.insert(module.begin(), "-m");
  module.insert(module.end(), arguments.begin(), arguments.end());
  return target == EmitTarget::torchrun ? torchrun(job, module) : accelerate_launch(job, module);
}

Emission emit_sft(EmitTarget target, const std::string& model, const TrainingJob& job) {
  Emission emission;
  emission.files.push_back({std::string(kSftFile), yaml_from(sft_arguments(target, model, job))});
  if (target == EmitTarget::accelerate || target == EmitTarget::fsdp) add_accelerate(job, emission);
  emission.command = started(target, job, {"--config", std::string(kSftFile)}) + " \\\n  --dataset_name \"$DATASET\"\n";
  emission.notes.emplace_back("DATASET is the data set's name on the hub or its folder.");
  if (job.method != TrainingMethod::full && job.lora.adapter_dtype != model::Dtype::f32)
    emission.notes.emplace_back("TRL decides the type of the adapters; --emit trl writes a program that keeps 16 bit.");
  return emission;
}

Emission emit_trl(const std::string& model, const TrainingJob& job) {
  Emission emission;
  emission.files.push_back({std::string(kProgramFile), trl_program(model, job)});
  const bool several = job.data_parallel > 1 || job.sharding.kind != Sharding::none;
  if (several) add_accelerate(job, emission);
  const std::string program(kProgramFile);
  emission.command = (several ? accelerate_launch(job, {program}) : "python " + program) + " \"$DATASET\"\n";
  emission.notes.emplace_back("DATASET is the data set's name on the hub, or a .json or .jsonl file.");
  return emission;
}

Emission emit_llama_factory(const std::string& model, const TrainingJob& job) {
  Emission emission;
  emission.files.push_back({std::string(kLlamaFactoryFile), yaml_from(llama_factory_config(model, job))});
  const std::string file(kLlamaFactoryFile);
  if (is_fsdp(job.sharding.kind)) {
    add_accelerate(job, emission);
    emission.command = accelerate_launch(job, {"-m", "llamafactory.launcher", file}) + "\n";
  } else if (job.data_parallel > 1 || job.sharding.kind != Sharding::none) {
    emission.command = fmt::format("FORCE_TORCHRUN=1 NPROC_PER_NODE={} ", per_machine(job));
    if (machines(job) > 1)
      emission.command += fmt::format(
          "NNODES={} NODE_RANK=\"$NODE_RANK\" MASTER_ADDR=\"$MASTER_ADDR\" MASTER_PORT=29500 ", machines(job));
    emission.command += fmt::format("llamafactory-cli train {}\n", file);
  } else {
    emission.command = fmt::format("llamafactory-cli train {}\n", file);
  }
  emission.notes.emplace_back("Add `dataset` and the model's `template` to llamafactory.yaml.");
  return emission;
}

}  // namespace

Status check_training(EmitTarget target, const TrainingJob& job, int gpus) {
  GW_TRY(check_engine(target, job));
  GW_TRY(check_numbers(job, gpus));
  GW_TRY(check_parallelism(target, job));
  GW_TRY(check_precision(target, job));
  GW_TRY(check_memory_savers(target, job));
  return check_attention(target, job);
}

Result<Emission> emit_training(EmitTarget target, const std::string& model, const TrainingJob& job, int gpus) {
  GW_TRY(check_training(target, job, gpus));
  Emission emission = target == EmitTarget::trl             ? emit_trl(model, job)
                      : target == EmitTarget::llama_factory ? emit_llama_factory(model, job)
                                                            : emit_sft(target, model, job);
  if (uses_deepspeed(target, job))
    emission.files.push_back({std::string(kDeepspeedFile), deepspeed_config(job).dump() + "\n"});
  note_machines(target, job, emission);
  note_choices(job, emission);
  return emission;
}

}  // namespace gpuwright::fit
