// One GPU of a training job: what it holds all the time, and from that its instants.
#pragma once

#include <vector>

#include "fit/training/adapters.h"
#include "fit/training/recipe.h"
#include "fit/training/sharding.h"

namespace gpuwright::fit::training {

// Layers of one pipeline stage, and whether it has the embeddings and the head.
struct Stage {
  std::size_t first = 0, last = 0;  // [first, last)
  bool is_first = true, is_last = true;
  double in_flight = 1;  // micro-batches whose activations are held
};
Stage stage_of(const model::Model& model, const TrainingJob& job, int stage);

// Bytes of one rank, before sharding by data-parallel ranks.
struct Holdings {
  double base_parameters = 0, base_bytes = 0;  // as stored while training
  double gradients = 0, master = 0, states = 0;
  double cast_copies = 0;
  double adapter_parameters = 0, adapter_bytes = 0;
  double trained_copies = 0;      // whole embeddings and head, trained beside adapters
  double largest_trained = 0;     // parameters of the largest trained tensor
  double head_gradient = 0;       // first to come in backward
  double embedding_gradient = 0;  // last, unless it is the head's
  double step_gradients = 0;
  StepTemporaries temporaries;  // bytes, not per parameter
  double dequantised = 0;       // the largest quantised linear in 16 bit
  Units units;
};
Holdings holdings_of(const model::Model& model, const TrainingJob& job, const Stage& stage,
                     const std::vector<Module>& adapted);

}  // namespace gpuwright::fit::training
