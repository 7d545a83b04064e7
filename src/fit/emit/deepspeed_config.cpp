// ds_config.json as deepspeed.runtime.config.DeepSpeedConfig (0.19.8) reads it. Batch sizes are explicit and multiply:
// train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x data-parallel GPUs.
#include "fit/emit/names.h"
#include "fit/emit/trainer.h"

namespace gpuwright::fit {
namespace {

constexpr std::int64_t kBucketElements = 500'000'000;  // DeepSpeed's default of both buckets

Json offload_to_cpu() {
  return Json::object().set("device", "cpu").set("pin_memory", true);
}

Json zero_optimization(const TrainingJob& job, int stage) {
  const std::int64_t bucket = job.sharding.bucket_elements.value_or(kBucketElements);
  Json zero = Json::object();
  zero.set("stage", stage).set("overlap_comm", job.sharding.overlap_comm).set("contiguous_gradients", true);
  zero.set("reduce_scatter", true).set("reduce_bucket_size", bucket);
  if (stage < 3) zero.set("allgather_partitions", true);
  zero.set("allgather_bucket_size", bucket);
  if (job.sharding.offload_optimizer) zero.set("offload_optimizer", offload_to_cpu());
  if (job.sharding.offload_parameters) zero.set("offload_param", offload_to_cpu());
  if (stage == 3) zero.set("stage3_gather_16bit_weights_on_model_save", true);
  return zero;
}

// Only what DeepSpeed builds itself. Trainer builds the others (8-bit, Adafactor) and hands them over.
Json optimizer(const TrainingJob& job) {
  Json parameters = Json::object();
  parameters.set("lr", learning_rate(job));
  if (job.optimizer == Optimizer::sgd || job.optimizer == Optimizer::sgd_momentum) {
    parameters.set("momentum", job.optimizer == Optimizer::sgd ? 0.0 : 0.9).set("weight_decay", 0.0);
    return Json::object().set("type", "SGD").set("params", parameters);
  }
  parameters.set("betas", Json(Json::Array{0.9, 0.999})).set("eps", 1e-8).set("weight_decay", 0.0);
  // DeepSpeed's own AdamW is fused, on the GPU and on the CPU; torch's is used where the job says so.
  const bool torch_adam = job.optimizer != Optimizer::adamw_fused && !job.sharding.offload_optimizer;
  parameters.set("torch_adam", torch_adam);
  return Json::object().set("type", "AdamW").set("params", parameters);
}

void set_precision(const TrainingJob& job, Json& config) {
  Json bf16 = Json::object();
  bf16.set("enabled", job.precision == Precision::mixed_deepspeed || job.precision == Precision::pure_bf16);
  if (job.precision == Precision::pure_bf16 && job.method == TrainingMethod::full)
    bf16.set("bf16_master_weights_and_grads", true).set("bf16_optimizer_states", true);
  config.set("bf16", bf16);
}

}  // namespace

Json deepspeed_config(const TrainingJob& job) {
  const int stage = zero_stage(job.sharding.kind).value_or(0);
  Json config = Json::object();
  config.set("train_batch_size", job.micro_batch * job.gradient_accumulation * job.data_parallel);
  config.set("train_micro_batch_size_per_gpu", job.micro_batch);
  config.set("gradient_accumulation_steps", job.gradient_accumulation);
  config.set("gradient_clipping", kGradientClipping);
  set_precision(job, config);
  const bool own_optimizer =
      is_adam_of_torch(job.optimizer) || job.optimizer == Optimizer::sgd || job.optimizer == Optimizer::sgd_momentum;
  if (own_optimizer) config.set("optimizer", optimizer(job));
  if (!is_adam_of_torch(job.optimizer)) config.set("zero_allow_untested_optimizer", true);
  config.set("zero_optimization", zero_optimization(job, stage));
  config.set("wall_clock_breakdown", false);
  return config;
}

}  // namespace gpuwright::fit
