// The training half of `gpuwright fit`: its options, and what they ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/fit_answer.h"
#include "fit/strategy/strategy.h"

namespace gpuwright::cli {

// Options of training alone; those shared with inference (--batch, --tensor-parallel, --attention) stand there.
std::vector<Option> training_options();

// --train was given.
bool wants_training(const Arguments& arguments);
Result<fit::TrainingJob> read_training_job(const Arguments& arguments);
// The job with what the words say in place of what it says.
Result<fit::TrainingJob> lay_over(const Arguments& arguments, fit::TrainingJob job);

// Without flash-attention on GPUs that it does not run on.
void suit_attention(const std::vector<fit::Target>& targets, fit::TrainingJob& job);

// GPUs that the job's parallelism asks for; data parallelism takes up those that were named where it was not told.
std::int64_t gpus_wanted(const fit::TrainingJob& job);
void take_gpus(fit::TrainingJob& job, bool data_parallel_told, std::size_t gpus);

// --strategy auto: nothing when it was not asked for.
Result<std::optional<fit::StrategyRequest>> read_strategy(const Arguments& arguments, const fit::TrainingJob& job,
                                                          std::size_t gpus);

Result<FitAnswer> answer_training(const FitRequest& request, const catalog::Catalog& catalog);
// The job that the answer is about: the solved or searched one where there is one.
const fit::TrainingJob& training_job_of(const FitAnswer& answer);

Json training_job_json(const fit::TrainingJob& job);
Json strategy_json(const fit::Strategy& strategy, const fit::StrategyRequest& request);
std::string describe_training(const fit::TrainingJob& job);
void print_strategy(const FitAnswer& answer, const Console& console);

}  // namespace gpuwright::cli
