#include "fit/training/recipe.h"

#include "fit/engine.h"

namespace gpuwright::fit::training {
namespace {

constexpr double kSmallTensor = 4096;  // bitsandbytes and torchao: min_8bit_size

bool is_autocast(Precision precision) {
  return precision == Precision::amp_bf16 || precision == Precision::amp_fp16;
}

// torchao and new bitsandbytes quantise states in blocks of 256 (128 for 4-bit).
double block_wise(double elements, double bytes_per_element, double block) {
  return 2 * elements * (bytes_per_element + 4 / block);
}

bool keeps_embeddings_in_fp32(const TrainingJob& job) {
  return job.engine == TrainingEngine::transformers || job.engine == TrainingEngine::deepspeed;
}

}  // namespace

Recipe full_recipe(const TrainingJob& job) {
  switch (job.precision) {
    case Precision::fp32:
      return {4, 0, 4, 0, 4, 0};
    case Precision::pure_bf16:
    case Precision::pure_fp16:
      return {2, 0, 2, 0, 2, 0};
    case Precision::amp_bf16:
    case Precision::amp_fp16: {
      // Under FSDP's mixed precision the low-precision copy is the gathered unit, which sharding.h counts; our own
      // trainer keeps the copies inside the graph (activations.h).
      const bool separate = job.sharding.kind != Sharding::fsdp && job.sharding.kind != Sharding::fsdp_grad_only &&
                            job.engine != TrainingEngine::gpuwright;
      return {4, separate ? 2.0 : 0.0, 4, 0, 4, 0};
    }
    case Precision::mixed_deepspeed:
      return {2, 0, 2, 4, 4, 4};
    case Precision::mixed_megatron:
      return {2, 0, 4, 4, 4, 0};
  }
  return {};
}

Recipe adapter_recipe(const TrainingJob& job) {
  if (job.precision == Precision::mixed_deepspeed || job.precision == Precision::mixed_megatron)
    return full_recipe(job);
  const double element = job.lora.adapter_dtype == model::Dtype::f32 ? 4 : 2;
  const double copy = element == 4 && is_autocast(job.precision) ? 2 : 0;
  return {element, copy, element, 0, element, 0};
}

Recipe trained_embedding_recipe(const TrainingJob& job) {
  if (job.precision == Precision::mixed_deepspeed || job.precision == Precision::mixed_megatron)
    return full_recipe(job);
  const double element = job.precision == Precision::fp32 ? 4 : 2;
  return {element, 0, element, 0, element, 0};
}

double state_bytes(const TrainingJob& job, const Recipe& recipe, double rows, double columns, bool is_embedding) {
  const double elements = rows * columns;
  const bool small = elements < kSmallTensor || (is_embedding && keeps_embeddings_in_fp32(job));
  switch (job.optimizer) {
    case Optimizer::adamw:
    case Optimizer::adamw_loop:
    case Optimizer::adamw_fused:
    case Optimizer::adamw_paged:
      return 2 * elements * recipe.state;
    case Optimizer::adamw_8bit:
    case Optimizer::adamw_fp8:
      return small ? 8 * elements : block_wise(elements, 1, 256);
    case Optimizer::adamw_4bit:
      return elements < kSmallTensor ? 8 * elements : block_wise(elements, 0.5, 128);
    case Optimizer::adafactor:
      return rows > 1 && columns > 1 ? 4 * (rows + columns) : 4 * elements;
    case Optimizer::sgd:
      return 0;
    case Optimizer::sgd_momentum:
      return elements * recipe.state;
  }
  return 0;
}

StepTemporaries step_temporaries(const TrainingJob& job, const Recipe& recipe) {
  // The 16-bit engines of DeepSpeed and Megatron step with fused kernels of their own.
  if (recipe.master > 0) return {};
  switch (job.optimizer) {
    case Optimizer::adamw: {
      if (job.optimizer_in_backward) return {0, 0, 0, recipe.state};
      // torchtune's recipes and torchtitan ask for the fused kernel; our own loop needs nothing.
      if (job.engine == TrainingEngine::torchtune || job.engine == TrainingEngine::torchtitan ||
          job.engine == TrainingEngine::gpuwright)
        return {};
      // _multi_tensor_adamw: sqrt of the second moment and, before torch 2.1, a second set for the denominator.
      const double sets = job.engine_version.find("torch 2.0") != std::string::npos ? 2 : 1;
      return {0, sets * recipe.state, 2 * recipe.state, 0};
    }
    case Optimizer::adamw_loop:
      return {0, 0, 0, 2 * recipe.state};
    case Optimizer::adamw_8bit:
    case Optimizer::adamw_4bit:
    case Optimizer::adamw_fp8:
      // torchao works in fp32 on one tensor at a time: both states unpacked; bitsandbytes' kernels need nothing.
      return {0, 0, 0, job.engine == TrainingEngine::torchtune ? 8.0 : 0.0};
    case Optimizer::adafactor:
      return {0, 0, 0, 12};  // update, its square and an fp32 copy of the gradient
    case Optimizer::sgd_momentum:
    case Optimizer::sgd:
      return {0, 0, recipe.gradient, 0};
    default:
      return {};
  }
}

double activation_element(const TrainingJob& job) {
  return job.precision == Precision::fp32 ? 4 : 2;
}

double residual_element(const TrainingJob& job) {
  if (job.precision == Precision::fp32) return 4;
  // autocast adds 16-bit outputs to the fp32 embeddings of an fp32 model; a 16-bit base stays 16-bit.
  if (!is_autocast(job.precision)) return 2;
  if (job.engine == TrainingEngine::gpuwright) return 4;
  if (job.sharding.kind == Sharding::fsdp || job.sharding.kind == Sharding::fsdp_grad_only) return 2;
  return job.method == TrainingMethod::full ? 4 : 2;
}

}  // namespace gpuwright::fit::training
