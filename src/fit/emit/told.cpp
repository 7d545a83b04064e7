#include "fit/emit/told.h"

#include "fit/emit/names.h"

namespace gpuwright::fit {
namespace {

// train batch = micro-batch x accumulation x GPUs, solved for what is not told as DeepSpeed does it
// (runtime/config.py, _set_batch_related_parameters).
struct Batch {
  std::int64_t micro = 1, accumulation = 1, gpus = 1;
};

Result<std::int64_t> quotient(const TrainingTold& told, std::int64_t divisor, std::string_view what) {
  const std::int64_t batch = *told.train_batch;
  if (batch % divisor != 0)
    return fault_at(told.train_batch.place(), fmt::format("{} is not a multiple of {} = {}", batch, what, divisor));
  return batch / divisor;
}

// Factors are bounded by 1e12 each, so that a product of two must be checked before it is made.
Result<std::int64_t> product(const TrainingTold& told, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    return fault_at(told.train_batch ? told.train_batch.place() : told.micro_batch.place(),
                    "multiplies to more than any batch");
  return result;
}

// The files were written for a number of GPUs, and others may have been named.
Status check_gpus(const Place& place, std::int64_t files, const SaidBeside& beside) {
  if (!beside.gpus || *beside.gpus == files) return {};
  return fault_at(place,
                  fmt::format("is for {} {}, and {} {} named", files, files == 1 ? "GPU" : "GPUs", *beside.gpus,
                              *beside.gpus == 1 ? "is" : "are"),
                  fmt::format("--gpu NAMEx{}, or change the file", files));
}

Result<Batch> solved_batch(const TrainingTold& told, const TrainingJob& base, const SaidBeside& beside) {
  if (told.gpus) GW_TRY(check_gpus(told.gpus.place(), *told.gpus, beside));
  Batch batch{told.micro_batch.value_or(base.micro_batch), told.accumulation.value_or(base.gradient_accumulation),
              told.gpus.value_or(beside.gpus.value_or(base.data_parallel))};
  if (!told.train_batch) return batch;
  if (told.micro_batch && told.accumulation) {
    const std::int64_t each = GW_TRY(product(told, batch.micro, batch.accumulation));
    batch.gpus = GW_TRY(quotient(told, each, "micro-batch x accumulation"));
    if (told.gpus && *told.gpus != batch.gpus)
      return fault_at(
          told.train_batch.place(),
          fmt::format("{} is not micro-batch {} x accumulation {} x {} GPUs ({}, line {})", *told.train_batch,
                      batch.micro, batch.accumulation, *told.gpus, told.gpus.place().file, told.gpus.place().line));
    GW_TRY(check_gpus(told.train_batch.place(), batch.gpus, beside));
    return batch;
  }
  if (told.micro_batch) {
    const std::int64_t each = GW_TRY(product(told, batch.micro, batch.gpus));
    batch.accumulation = GW_TRY(quotient(told, each, "micro-batch x GPUs"));
  } else {
    batch.accumulation = told.accumulation.value_or(1);
    const std::int64_t each = GW_TRY(product(told, batch.accumulation, batch.gpus));
    batch.micro = GW_TRY(quotient(told, each, "accumulation x GPUs"));
  }
  return batch;
}

Status check_autos(const TrainingTold& told, const SaidBeside& beside) {
  for (const Place& place : told.autos) {
    const bool precision = place.key == "bf16" || place.key == "fp16";
    if (told.answers(place.key) || (precision && beside.precision)) continue;
    const std::string option = precision                                    ? "--precision"
                               : place.key == "gradient_accumulation_steps" ? "--accumulate"
                                                                            : "--batch";
    return fault_at(place, "is auto, and nothing says the value",
                    fmt::format("{}, or name the file with the arguments too (per_device_train_batch_size, "
                                "gradient_accumulation_steps, bf16, fp16)",
                                option));
  }
  return {};
}

void hear(const SaidBeside& beside, TrainingTold& told) {
  if (beside.micro_batch) told.micro_batch.say(*beside.micro_batch, {"the command line", 1, "--batch"});
  if (beside.accumulation) told.accumulation.say(*beside.accumulation, {"the command line", 1, "--accumulate"});
  // The product in the files was that of their own factors.
  if ((beside.micro_batch || beside.accumulation) && told.micro_batch && told.accumulation) told.train_batch = {};
}

Result<TrainingMethod> method_of(const TrainingTold& told, const TrainingJob& base) {
  if (told.four_bit.value_or(false)) {
    if (told.lora && !*told.lora)
      return fault_at(told.four_bit.place(), "quantises the base, but nothing trains adapters",
                      "use_peft: true or finetuning_type: lora");
    return TrainingMethod::qlora;
  }
  if (told.dora.value_or(false)) return TrainingMethod::dora;
  if (told.lora) return *told.lora ? TrainingMethod::lora : TrainingMethod::full;
  const bool arguments = told.micro_batch && told.weights_dtype;  // TRL's: without use_peft it trains everything
  return arguments ? TrainingMethod::full : base.method;
}

Result<Precision> precision_of(const TrainingTold& told, const TrainingJob& base, TrainingMethod method) {
  const bool brain = told.bf16.value_or(false), half = told.fp16.value_or(false);
  if (brain && half)
    return fault_at(told.fp16.place(), fmt::format("contradicts {} in {}, line {}", told.bf16.place().key,
                                                   told.bf16.place().file, told.bf16.place().line));
  if (told.deepspeed) {
    if (!brain && !half) return Precision::fp32;
    return told.bf16_states.value_or(false) ? Precision::pure_bf16 : Precision::mixed_deepspeed;
  }
  if (told.pure_bf16.value_or(false)) return Precision::pure_bf16;
  if (told.llama_factory && (brain || half)) {
    if (method == TrainingMethod::full) return brain ? Precision::amp_bf16 : Precision::amp_fp16;
    return brain ? Precision::pure_bf16 : Precision::pure_fp16;
  }
  if (told.weights_dtype && *told.weights_dtype == "bfloat16") return Precision::pure_bf16;
  if (told.weights_dtype && *told.weights_dtype == "float16") return Precision::pure_fp16;
  if (brain) return Precision::amp_bf16;
  if (half) return Precision::amp_fp16;
  const bool single = told.weights_dtype && *told.weights_dtype == "float32";
  return single || told.llama_factory ? Precision::fp32 : base.precision;
}

// What DeepSpeed's file says about AdamW wins only where the arguments' own kind is no AdamW of torch.
Optimizer optimizer_of(const TrainingTold& told, const TrainingJob& base) {
  if (!told.deepspeed_optimizer) return told.trainer_optimizer.value_or(base.optimizer);
  const bool both_adam = is_adam_of_torch(*told.deepspeed_optimizer) && told.trainer_optimizer &&
                         is_adam_of_torch(*told.trainer_optimizer);
  return both_adam ? *told.trainer_optimizer : *told.deepspeed_optimizer;
}

Status fill_sharding(const TrainingTold& told, TrainingJob& job) {
  ShardingOptions& sharding = job.sharding;
  if (told.deepspeed && told.fsdp)
    return fault_at(told.fsdp.place(), fmt::format("contradicts DeepSpeed in {}", told.deepspeed.place().file));
  if (told.deepspeed) {
    const std::int64_t stage = told.zero_stage.value_or(0);
    sharding.kind = sharding_of_stage(stage).value_or(Sharding::none);
    sharding.offload_optimizer = told.offload_optimizer.value_or(false);
    sharding.offload_parameters = told.offload_parameters.value_or(false);
    if (sharding.offload_parameters && stage != 3)
      return fault_at(told.offload_parameters.place(), fmt::format("works under ZeRO-3 only, and stage is {}", stage));
    sharding.overlap_comm = told.overlap_comm.value_or(stage == 3);
    sharding.bucket_elements.reset();
    if (told.bucket) sharding.bucket_elements = *told.bucket;
    sharding.partitioned_at_load = told.partitioned_at_load.value_or(true) || stage != 3;
    job.engine = TrainingEngine::deepspeed;
  } else if (told.fsdp) {
    sharding.kind = told.fsdp_grad_only.value_or(false) ? Sharding::fsdp_grad_only : Sharding::fsdp;
    sharding.offload_parameters = sharding.offload_optimizer = told.fsdp_offload.value_or(false);
    job.engine = TrainingEngine::fsdp;
    if (told.fsdp_version) job.engine_version = std::to_string(*told.fsdp_version);
  }
  return {};
}

Status fill_adapters(const TrainingTold& told, TrainingJob& job) {
  job.lora.rank = told.lora_rank.value_or(job.lora.rank);
  job.lora.targets = told.lora_targets.value_or(job.lora.targets);
  job.lora.trainable_embeddings = told.trainable_embeddings.value_or(job.lora.trainable_embeddings);
  if (told.lora_dropout) job.lora.dropout = *told.lora_dropout > 0;
  return {};
}

void fill_activations(const TrainingTold& told, TrainingJob& job) {
  const bool known = told.checkpointing || told.fsdp_checkpointing;
  if (known) {
    const bool on = told.checkpointing.value_or(false) || told.fsdp_checkpointing.value_or(false);
    job.checkpointing = on ? Checkpointing::full : Checkpointing::none;
  }
  job.activation_offload = told.activation_offload.value_or(job.activation_offload);
  if (job.checkpointing == Checkpointing::full && job.activation_offload) {
    job.checkpointing = Checkpointing::offloaded;
    job.activation_offload = false;
  }
  job.attention = told.attention.value_or(job.attention);
  job.fused_kernels = told.fused_kernels.value_or(job.fused_kernels);
  job.chunked_cross_entropy = told.chunked_cross_entropy.value_or(job.chunked_cross_entropy);
  job.compiled = told.compiled.value_or(job.compiled);
  job.sequence = told.sequence.value_or(job.sequence);
  if (told.packing) job.varying_lengths = !*told.packing;
}

}  // namespace

bool TrainingTold::answers(std::string_view deepspeed_key) const {
  if (deepspeed_key == "train_micro_batch_size_per_gpu") return static_cast<bool>(micro_batch);
  if (deepspeed_key == "gradient_accumulation_steps") return static_cast<bool>(accumulation);
  // bf16 and fp16: the arguments' false is told by the file being there at all.
  return static_cast<bool>(bf16) || static_cast<bool>(fp16) || static_cast<bool>(model) ||
         static_cast<bool>(weights_dtype);
}

Result<TrainingJob> job_from(TrainingTold told, const TrainingJob& base, const SaidBeside& beside) {
  hear(beside, told);
  GW_TRY(check_autos(told, beside));
  TrainingJob job = base;
  const Batch batch = GW_TRY(solved_batch(told, base, beside));
  constexpr std::int64_t kMostGpus = 1'000'000;
  if (batch.gpus > kMostGpus)
    return fault_at(told.train_batch ? told.train_batch.place() : told.gpus.place(),
                    "asks for more than a million GPUs");
  job.micro_batch = batch.micro;
  job.gradient_accumulation = batch.accumulation;
  job.data_parallel = static_cast<int>(batch.gpus);
  if (told.machines) {
    if (batch.gpus % *told.machines != 0)
      return fault_at(told.machines.place(),
                      fmt::format("{} does not divide {} processes", *told.machines, batch.gpus));
    if (*told.machines > 1) job.gpus_per_node = static_cast<int>(batch.gpus / *told.machines);
  }
  job.method = GW_TRY(method_of(told, base));
  GW_TRY(fill_sharding(told, job));
  job.precision = GW_TRY(precision_of(told, base, job.method));
  job.optimizer = optimizer_of(told, base);
  GW_TRY(fill_adapters(told, job));
  fill_activations(told, job);
  return job;
}

}  // namespace gpuwright::fit
