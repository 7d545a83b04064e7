// What one rank of vLLM holds of a model's tensors after loading.
#pragma once

#include "fit/engines/vllm_cache.h"

namespace gpuwright::fit {

struct VllmWeights {
  Bytes tensors;   // the rank's own shares
  Bytes rounding;  // what the allocator adds to matrices that get a segment of their own
  Bytes rotary;    // tables of cosines and sines, one for the whole model
  Bytes padding;   // what a kernel's layout adds to MXFP4 experts
};
struct VllmRank {
  std::int64_t tensor_parallel = 1;
  std::int64_t rank = 0;
  LayerRange layers;
  bool first_stage = true, last_stage = true;
  std::string_view mxfp4_backend;
};
VllmWeights vllm_weights(const model::Model& model, const VllmRank& rank);

}  // namespace gpuwright::fit
