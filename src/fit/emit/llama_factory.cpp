// llamafactory.yaml as LLaMA-Factory 0.9.5 reads it (hparams/*_args.py, and Trainer's own arguments). There "bf16"
// means: base weights in bf16, what is trained in fp32; "pure_bf16" keeps that in bf16 too (model/adapter.py).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fit/emit/names.h"
#include "fit/emit/trainer.h"

namespace gpuwright::fit {
namespace {

std::string_view attention(const TrainingJob& job) {
  if (job.attention == "flash_attention_2") return "fa2";
  return job.attention == "sdpa" ? "sdpa" : "disabled";
}

void set_method(const TrainingJob& job, Json& config) {
  config.set("stage", "sft").set("do_train", true);
  config.set("finetuning_type", job.method == TrainingMethod::full ? "full" : "lora");
  if (job.method == TrainingMethod::full) return;
  const std::vector<std::string>& targets = job.lora.targets;
  const bool all = targets.empty() || targets.front() == "all-linear";
  config.set("lora_rank", job.lora.rank).set("lora_alpha", lora_alpha(job));
  config.set("lora_dropout", job.lora.dropout ? 0.05 : 0.0);
  config.set("lora_target", all ? std::string("all") : fmt::format("{}", fmt::join(targets, ",")));
  config.set("use_dora", job.method == TrainingMethod::dora);
  if (job.lora.trainable_embeddings) config.set("additional_target", "embed_tokens,lm_head");
  if (job.method == TrainingMethod::qlora)
    config.set("quantization_bit", 4)
        .set("quantization_method", "bnb")
        .set("quantization_type", "nf4")
        .set("double_quantization", true);
}

bool is_pure(const TrainingJob& job) {
  if (job.precision != Precision::pure_bf16) return false;
  return job.method == TrainingMethod::full || job.lora.adapter_dtype != model::Dtype::f32;
}

}  // namespace

Json llama_factory_config(const std::string& model, const TrainingJob& job) {
  Json config = Json::object();
  config.set("model_name_or_path", model).set("flash_attn", attention(job));
  const bool liger = job.fused_kernels || job.chunked_cross_entropy;
  config.set("enable_liger_kernel", liger);
  config.set("disable_gradient_checkpointing", job.checkpointing == Checkpointing::none);
  set_method(job, config);
  config.set("cutoff_len", job.sequence).set("packing", !job.varying_lengths);
  config.set("output_dir", "out").set("num_train_epochs", 1);
  config.set("per_device_train_batch_size", job.micro_batch);
  config.set("gradient_accumulation_steps", job.gradient_accumulation);
  const bool half = job.precision == Precision::amp_fp16 || job.precision == Precision::pure_fp16;
  const bool brain = !half && job.precision != Precision::fp32;
  config.set("bf16", brain && !is_pure(job)).set("pure_bf16", is_pure(job)).set("fp16", half);
  config.set("optim", trainer_name(job.optimizer).value_or("adamw_torch"));
  if (job.compiled) config.set("torch_compile", true);
  if (job.optimizer == Optimizer::sgd_momentum) config.set("optim_args", "momentum=0.9");
  config.set("learning_rate", learning_rate(job)).set("lr_scheduler_type", "cosine").set("warmup_steps", 20);
  config.set("max_grad_norm", kGradientClipping);
  if (zero_stage(job.sharding.kind).value_or(0) > 0) config.set("deepspeed", kDeepspeedFile);
  config.set("logging_steps", 10).set("save_strategy", "epoch").set("report_to", "none");
  return config;
}

}  // namespace gpuwright::fit
