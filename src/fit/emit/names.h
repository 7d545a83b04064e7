// The words in which Trainer, DeepSpeed and LLaMA-Factory say what a TrainingJob says; one table for writer and reader.
// Source: transformers 5.24 training_args.py (OptimizerNames) and trainer_optimizer.py.
#pragma once

#include <optional>
#include <string_view>

#include "fit/training/job.h"

namespace gpuwright::fit {

// TrainingArguments.optim; nothing for an optimizer that Trainer does not have.
std::optional<std::string_view> trainer_name(Optimizer optimizer);
// Aliases are taken; nothing for a name whose memory is not known here (lion, galore, ...).
std::optional<Optimizer> trainer_optimizer_named(std::string_view trainer_name);
bool is_adam_of_torch(Optimizer optimizer);  // what DeepSpeed replaces by its own AdamW

bool is_fsdp(Sharding sharding);
// 0 to 3; nothing for FSDP.
std::optional<int> zero_stage(Sharding sharding);
std::optional<Sharding> sharding_of_stage(std::int64_t stage);

// "1" or "1.x" asks for FullyShardedDataParallel, everything else for fully_shard.
int fsdp_version(const TrainingJob& job);

}  // namespace gpuwright::fit
