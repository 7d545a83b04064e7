#include "fit/training/solve.h"

#include <algorithm>

namespace gpuwright::fit {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 26;

// Memory grows with `field`, so the largest that fits is found by halving.
Result<TrainingSolution> largest(std::int64_t TrainingJob::*field, std::int64_t most, const model::Model& model,
                                 const TrainingJob& job, const std::vector<Target>& targets, bool strict) {
  TrainingSolution solution{0, {}, job};
  solution.job.*field = 1;
  const auto fits = [&](std::int64_t value) -> Result<bool> {
    TrainingJob changed = job;
    changed.*field = value;
    Estimate estimate = GW_TRY(estimate_training(model, changed, targets));
    const Verdict verdict = estimate.verdict();
    const bool good = verdict == Verdict::fits || (!strict && verdict == Verdict::tight);
    if (good || value == 1) {
      solution.estimate = std::move(estimate);
      solution.job = changed;
      solution.value = good ? value : 0;
    }
    return good;
  };
  if (!GW_TRY(fits(1))) return solution;
  std::int64_t good = 1, bad = most + 1;
  for (std::int64_t next = 2; next < bad; next = std::min(next * 2, bad)) {
    if (GW_TRY(fits(next)))
      good = next;
    else
      bad = next;
  }
  while (bad - good > std::max<std::int64_t>(1, good / 4096)) {
    const std::int64_t middle = good + (bad - good) / 2;
    (GW_TRY(fits(middle)) ? good : bad) = middle;
  }
  return solution;
}

}  // namespace

Result<TrainingSolution> largest_sequence(const model::Model& model, const TrainingJob& job,
                                          const std::vector<Target>& targets, bool strict) {
  const std::int64_t most =
      std::clamp<std::int64_t>(kMostTokens / std::max<std::int64_t>(job.micro_batch, 1), 1, kMostTokens);
  return largest(&TrainingJob::sequence, most, model, job, targets, strict);
}

Result<TrainingSolution> largest_micro_batch(const model::Model& model, const TrainingJob& job,
                                             const std::vector<Target>& targets, bool strict) {
  const std::int64_t most = std::clamp<std::int64_t>(kMostTokens / std::max<std::int64_t>(job.sequence, 1), 1, 1 << 16);
  return largest(&TrainingJob::micro_batch, most, model, job, targets, strict);
}

}  // namespace gpuwright::fit
