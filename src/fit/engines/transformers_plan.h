// Where a transformers job's layers and tokens go: what device_map="auto" puts on which GPU, and how many tokens each
// phase of generate() has in flight.
#pragma once

#include <vector>

#include "fit/engine.h"

namespace gpuwright::fit {

// One GPU's part of the model: consecutive blocks, the embeddings on the first, the output head on the last.
struct TransformersStage {
  std::size_t first_layer = 0, last_layer = 0;  // [first, last)
  bool first = false, last = false;
  Bytes weights;
  Bytes weights_rounded;  // as memory_allocated counts them when every tensor is loaded on its own

  bool holds(std::int32_t layer) const {
    return layer >= 0 && static_cast<std::size_t>(layer) >= first_layer && static_cast<std::size_t>(layer) < last_layer;
  }
};
// Accelerate's balanced map: consecutive modules, every GPU but the last filled to an equal share.
std::vector<TransformersStage> balanced_stages(const model::Model& model, std::size_t gpus);

struct TransformersTokens {
  std::int64_t prompt = 1;   // of one sequence
  std::int64_t cached = 1;   // of one sequence when the last token is computed
  std::int64_t encoder = 0;  // positions of an encoder
  std::int64_t sequences = 1;
};
TransformersTokens tokens_of(const model::Model& model, const Job& job);

}  // namespace gpuwright::fit
