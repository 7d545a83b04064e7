// The question turned round for training: how long a sequence, how large a micro-batch fits.
#pragma once

#include <vector>

#include "fit/training/training.h"

namespace gpuwright::fit {

struct TrainingSolution {
  std::int64_t value = 0;  // 0: not even the smallest fits
  Estimate estimate;       // of the job with that value (or with the smallest one tried)
  TrainingJob job;
};
// The largest value whose verdict is `fits` (strict) or at least `tight`. Neither stops at the length that the model
// was trained on: a longer one is a note, not a fault.
Result<TrainingSolution> largest_sequence(const model::Model& model, const TrainingJob& job,
                                          const std::vector<Target>& targets, bool strict);
Result<TrainingSolution> largest_micro_batch(const model::Model& model, const TrainingJob& job,
                                             const std::vector<Target>& targets, bool strict);

}  // namespace gpuwright::fit
