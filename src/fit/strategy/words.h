// What people call the settings of a training job: the words of options, JSON and answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fit/training/job.h"

namespace gpuwright::fit {

std::string_view name_of(Precision precision);          // "mixed-deepspeed"
std::string_view name_of(Optimizer optimizer);          // "adamw-8bit"
std::string_view name_of(Checkpointing checkpointing);  // "full"
std::string_view name_of(Sharding sharding);            // "zero3"

std::optional<TrainingMethod> training_method_named(std::string_view name);
std::optional<Precision> precision_named(std::string_view name);
std::optional<Optimizer> optimizer_named(std::string_view name);
std::optional<Checkpointing> checkpointing_named(std::string_view name);

std::vector<std::string> precision_names();
std::vector<std::string> optimizer_names();

// "deepspeed ZeRO-3 with optimizer on the CPU", "megatron tensor parallel 4 x pipeline parallel 2"
std::string describe_layout(const TrainingJob& job);
std::string describe_checkpointing(Checkpointing checkpointing);

}  // namespace gpuwright::fit
