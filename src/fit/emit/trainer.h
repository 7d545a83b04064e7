// What the training targets share: the arguments of Hugging Face's Trainer (through TRL's sft script) and how the
// processes are started. Each of deepspeed, fsdp, accelerate and torchrun is one way to start the same sft.yaml; trl
// writes the same as a Python program; llama-factory has its own YAML.
#pragma once

#include <string>

#include "base/json.h"
#include "fit/emit/emit.h"

namespace gpuwright::fit {

// `model` has been checked: no scheme, no control characters, no leading dash.
Result<Emission> emit_training(EmitTarget target, const std::string& model, const TrainingJob& job, int gpus);
// What the target cannot express.
Status check_training(EmitTarget target, const TrainingJob& job, int gpus);

// ---------------------------------------------------------------- parts, one file each

// ds_config.json (deepspeed_config.cpp). `gpus` is the data-parallel world.
Json deepspeed_config(const TrainingJob& job);

// accelerate.yaml (accelerate_config.cpp): DEEPSPEED with ds_config.json, FSDP, MULTI_GPU or NO.
Json accelerate_config(const TrainingJob& job);
// TrainingArguments.fsdp_config, for starters that are not accelerate.
Json trainer_fsdp_config(const TrainingJob& job);

// Arguments of SFTConfig that every target shares, in their order (trainer_arguments.cpp).
Json trainer_arguments(const TrainingJob& job);
// ModelConfig of TRL: model, dtype, attention, LoRA and quantisation.
Json model_arguments(const std::string& model, const TrainingJob& job);
std::string_view weights_dtype(const TrainingJob& job);  // "bfloat16", "float16" or "float32"
bool uses_autocast(const TrainingJob& job);              // bf16 or fp16 of TrainingArguments
std::int64_t lora_alpha(const TrainingJob& job);

std::string trl_program(const std::string& model, const TrainingJob& job);    // trl_program.cpp
Json llama_factory_config(const std::string& model, const TrainingJob& job);  // llama_factory.cpp

// Peak rates to start from; memory does not depend on them. LoRA: arXiv 2305.14314, table 9; full: the Alpaca recipe.
double learning_rate(const TrainingJob& job);
constexpr std::string_view kDeepspeedFile = "ds_config.json";
constexpr std::string_view kAccelerateFile = "accelerate.yaml";
constexpr double kGradientClipping = 1.0;  // TrainingArguments.max_grad_norm's default

}  // namespace gpuwright::fit
