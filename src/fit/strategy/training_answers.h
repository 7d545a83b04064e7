// Questions about training beside "does it fit": which GPU is the smallest that does, and what would help.
#pragma once

#include <vector>

#include "fit/solve.h"
#include "fit/strategy/strategy.h"

namespace gpuwright::fit {

// Accelerators of the catalogue of which `count` hold the job, smallest usable memory first, at most `limit` of them,
// all of them let through by `among`.
Result<std::vector<GpuChoice>> smallest_training_gpus(const model::Model& model, const TrainingJob& job,
                                                      const catalog::Catalog& catalog, int count, bool strict,
                                                      std::size_t limit, const GpuFilter& among = {});

// Changes that would help, each estimated, in the order of what they cost; the last, where none of them is enough, is
// the plan of find_strategy that keeps the method.
std::vector<Advice> advise_training(const model::Model& model, const TrainingJob& job,
                                    const std::vector<Target>& targets, const Machine& machine);

}  // namespace gpuwright::fit
