// Where llama.cpp puts each layer and tensor: src/llama-model.cpp (llama_model::load_tensors, get_layer_buft_list) and
// src/llama-arch.cpp (which tensors belong to the input, a block or the output), ggml-org/llama.cpp.
#pragma once

#include <vector>

#include "fit/engines/llama_cpp_settings.h"
#include "fit/fit.h"

namespace gpuwright::fit {

// Buffers are numbered as in ComputeGraph: 0 the host, 1 the first GPU.
struct LlamaPlacement {
  std::vector<int> layer_buffer;  // of each block
  int output_buffer = 0;          // of the output norm and head
  std::vector<Bytes> weights;     // of each buffer
  Bytes duplicated_head;          // of the tied output head that the GPU holds beside the host's embedding
  Bytes projector;                // mmproj, on the first GPU
};

Result<LlamaPlacement> llama_placement(const model::Model& model, const Job& job, const LlamaSettings& settings,
                                       const std::vector<Target>& targets);

}  // namespace gpuwright::fit
