// Who holds which share of what, and the buffers that sharding itself needs.
//
// ZeRO (arXiv 1910.02054, section 5) divides states from stage 1 on, gradients from 2 on, weights at 3 by the number
// of data-parallel ranks. Beside the shares stand what formulas of the paper leave out: reduce and all-gather buckets
// (DeepSpeed runtime/zero/stage_1_and_2.py: the IPG buffer, doubled by overlap_comm), weights that stay gathered
// (stage3_max_live_parameters), and FSDP's gathered units: the one in use and the one prefetched.
#pragma once

#include "fit/training/adapters.h"
#include "fit/training/constants.h"
#include "fit/training/job.h"

namespace gpuwright::fit::training {

struct ShardShares {
  double weights = 1, gradients = 1, states = 1;  // divisors
};
ShardShares shard_shares(const TrainingJob& job);

// What the shares are taken of, in bytes of the type that travels.
struct Units {
  double largest_layer = 0;  // stored (or computed) weights of one block
  double root = 0;           // embeddings, head and final norm
  double all = 0;
  double all_parameters = 0;
  double trained_parameters = 0;
  double largest_layer_gradient = 0;  // of the trained weights of one block, before they are reduced
};

struct BufferBytes {
  double low = 0, expected = 0, high = 0;
  std::string formula, source;
};
// While layers run forward and backward; `backward` adds unreduced gradients.
Result<BufferBytes> running_buffers(const TrainingJob& job, const Units& units, bool backward);
// At the step: fp32 gradients of the shard in work; and after it, while the new weights are gathered.
Result<BufferBytes> step_buffers(const TrainingJob& job, const Units& units);
Result<BufferBytes> gather_buffers(const TrainingJob& job, const Units& units);

}  // namespace gpuwright::fit::training
