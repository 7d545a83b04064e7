// What no tensor explains: CUDA context, cuBLAS workspaces, NCCL, and what the caching allocator keeps.
#pragma once

#include <vector>

#include "fit/fit.h"
#include "fit/training/job.h"

namespace gpuwright::fit::training {

// Outside of the allocator's slack, the same at every instant.
Result<std::vector<Component>> outside_components(const TrainingJob& job, const Target& target);

// Reserved but not allocated at an instant, from what is allocated then. Where lengths vary, blocks of one length are
// too small for the next: the cache grows with `tokens`, those whose activations are alive.
Result<Component> allocator_slack(const TrainingJob& job, const Instant& instant, double tokens);

}  // namespace gpuwright::fit::training
