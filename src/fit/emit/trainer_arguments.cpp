// The arguments of transformers' TrainingArguments and TRL's SFTConfig and ModelConfig (transformers 5.24, TRL 1.16).
#include <fmt/format.h>

#include "fit/emit/names.h"
#include "fit/emit/trainer.h"

namespace gpuwright::fit {
namespace {

void set_memory_arguments(const TrainingJob& job, Json& arguments) {
  const bool checkpointing = job.checkpointing != Checkpointing::none;
  arguments.set("gradient_checkpointing", checkpointing);
  if (checkpointing) arguments.set("gradient_checkpointing_kwargs", Json::object().set("use_reentrant", false));
  arguments.set("activation_offloading", job.activation_offload || job.checkpointing == Checkpointing::offloaded);
  const bool liger = job.fused_kernels || job.chunked_cross_entropy;
  arguments.set("use_liger_kernel", liger);
  if (liger) {
    Json kernels = Json::object();
    kernels.set("rope", job.fused_kernels).set("rms_norm", job.fused_kernels).set("swiglu", job.fused_kernels);
    kernels.set("cross_entropy", false).set("fused_linear_cross_entropy", job.chunked_cross_entropy);
    arguments.set("liger_kernel_config", kernels);
  }
  if (job.compiled) arguments.set("torch_compile", true);
}

}  // namespace

double learning_rate(const TrainingJob& job) {
  return job.method == TrainingMethod::full ? 2e-5 : 2e-4;
}

std::int64_t lora_alpha(const TrainingJob& job) {
  return 2 * job.lora.rank;
}

std::string_view weights_dtype(const TrainingJob& job) {
  switch (job.precision) {
    case Precision::pure_bf16:
    case Precision::mixed_deepspeed:
    case Precision::mixed_megatron:
      return "bfloat16";
    case Precision::pure_fp16:
      return "float16";
    case Precision::fp32:
    case Precision::amp_bf16:
    case Precision::amp_fp16:
      return "float32";
  }
  return "float32";
}

// Adapters are kept in fp32 beside a 16-bit base, so that their products need autocast. Full training in pure 16 bit
// does not.
bool uses_autocast(const TrainingJob& job) {
  if (job.precision == Precision::fp32) return false;
  const bool pure = job.precision == Precision::pure_bf16 || job.precision == Precision::pure_fp16;
  return !pure || job.method != TrainingMethod::full || zero_stage(job.sharding.kind).value_or(0) > 0;
}

Json trainer_arguments(const TrainingJob& job) {
  const bool half = job.precision == Precision::amp_fp16 || job.precision == Precision::pure_fp16;
  Json arguments = Json::object();
  arguments.set("output_dir", "out").set("num_train_epochs", 1);
  arguments.set("per_device_train_batch_size", job.micro_batch);
  arguments.set("gradient_accumulation_steps", job.gradient_accumulation);
  arguments.set("max_length", job.sequence).set("packing", !job.varying_lengths);
  arguments.set("bf16", uses_autocast(job) && !half).set("fp16", uses_autocast(job) && half);
  arguments.set("optim", trainer_name(job.optimizer).value_or("adamw_torch"));
  if (job.optimizer == Optimizer::sgd_momentum) arguments.set("optim_args", "momentum=0.9");
  arguments.set("learning_rate", learning_rate(job)).set("lr_scheduler_type", "cosine").set("warmup_steps", 20);
  arguments.set("max_grad_norm", kGradientClipping);
  set_memory_arguments(job, arguments);
  arguments.set("logging_steps", 10).set("save_strategy", "epoch").set("report_to", "none");
  return arguments;
}

Json model_arguments(const std::string& model, const TrainingJob& job) {
  Json arguments = Json::object();
  arguments.set("model_name_or_path", model).set("dtype", weights_dtype(job));
  arguments.set("attn_implementation", job.attention);
  if (job.method == TrainingMethod::full) return arguments;
  arguments.set("use_peft", true).set("lora_r", job.lora.rank).set("lora_alpha", lora_alpha(job));
  arguments.set("lora_dropout", job.lora.dropout ? 0.05 : 0.0).set("use_dora", job.method == TrainingMethod::dora);
  if (!job.lora.targets.empty()) {
    Json targets = Json::array();
    // TRL makes one name a string (ModelConfig), which PEFT matches whole, as a pattern, and not as a name.
    const bool pattern = job.lora.targets.size() == 1 && job.lora.targets.front() != "all-linear";
    for (const std::string& target : job.lora.targets) targets.push(pattern ? ".*\\." + target : target);
    arguments.set("lora_target_modules", targets);
  }
  if (job.lora.trainable_embeddings)
    arguments.set("lora_modules_to_save", Json(Json::Array{"embed_tokens", "lm_head"}));
  if (job.method == TrainingMethod::qlora)
    arguments.set("load_in_4bit", true).set("bnb_4bit_quant_type", "nf4").set("use_bnb_nested_quant", true);
  return arguments;
}

}  // namespace gpuwright::fit
