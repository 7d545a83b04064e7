// Whether a training job fits, asked many times: nothing is estimated twice that must come out the same.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "fit/training/training.h"

namespace gpuwright::fit::strategy {

// Keeps references to the model and the targets.
class Memory {
 public:
  Memory(const model::Model& model, const std::vector<Target>& targets);

  // Of all GPUs and pipeline stages; `at_least` ends the question at the first GPU that is worse. An error of the
  // estimate (a job that contradicts the model) counts as not fitting.
  struct Answer {
    Verdict verdict = Verdict::no;
    Bytes shortfall;  // of the fullest GPU asked: expected peak less usable bytes; negative where there is room
    bool valid = false;
  };
  Answer ask(const TrainingJob& job);
  // With every GPU. `full` estimates GPUs that must come out alike once; `exact` asks for each.
  Result<Estimate> full(const TrainingJob& job);
  Result<Estimate> exact(const TrainingJob& job);

  std::size_t estimates() const { return estimates_; }

 private:
  Result<const model::Model*> model_for_method(TrainingMethod method);

  const model::Model& model_;
  const std::vector<Target>& targets_;
  std::vector<Target> one_;  // all targets are alike: the one that stands for them
  std::optional<Result<model::Model>> quantised_;
  std::size_t estimates_ = 0;
};

// The largest expected peak of all GPUs.
Bytes peak_of(const Estimate& estimate);
Bytes shortfall_of(const Estimate& estimate);

}  // namespace gpuwright::fit::strategy
