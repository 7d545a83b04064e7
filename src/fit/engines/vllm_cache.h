// vLLM's paged key-value cache: the page of a block, the groups of its hybrid manager, and how many blocks a sequence
// takes in each. What a rank holds under tensor and pipeline parallelism.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fit/engine.h"

namespace gpuwright::fit {

// Layers [first, last) of a pipeline stage.
struct LayerRange {
  std::size_t first = 0, last = 0;
};
// vllm/distributed/utils.py get_pp_indices: equal parts; a remainder goes to the later stages, but not the last one.
LayerRange pipeline_layers(std::size_t layers, std::size_t stages, std::size_t stage);

// Bytes one token takes in one layer on one rank: kv heads are divided, at least one stays; a latent is not divided.
Bytes vllm_token_bytes(const model::Attention& attention, std::int64_t ranks, model::Dtype key, model::Dtype value);
// One sequence's state of one recurrent layer on one rank; convolution and state with these element sizes.
Bytes vllm_state_bytes(const model::Recurrent& recurrent, std::int64_t ranks, std::int64_t convolution,
                       std::int64_t state);

// Layers that share a block table. Every group has as many pages a block as `layers_per_group`; a short one is padded.
struct CacheGroup {
  std::string what;  // "full attention"
  std::int64_t layers = 0;
  std::int64_t blocks_per_sequence = 0;
  bool recurrent = false;
};

struct VllmCache {
  std::int64_t block_tokens = 16;
  Bytes page;                         // of one block in one layer, padding included
  std::int64_t layers_per_group = 0;  // pages of one block id
  std::vector<CacheGroup> groups;
  std::string page_formula;

  Bytes block_bytes() const { return page * layers_per_group; }
  std::int64_t blocks_per_sequence() const;
  // What the sequences need, and how it divides into attention and recurrent pages.
  Bytes attention_bytes(std::int64_t sequences) const;
  Bytes recurrent_bytes(std::int64_t sequences) const;
};

struct VllmCacheRequest {
  std::int64_t tokens = 0;  // of one sequence
  std::int64_t max_batched_tokens = 0;
  std::int64_t ranks = 1;
  std::int64_t block_tokens = 16;
  bool hybrid_manager = true;
  model::Dtype key = model::Dtype::bf16, value = model::Dtype::bf16;
  LayerRange layers;
};
VllmCache vllm_cache(const model::Model& model, const VllmCacheRequest& request);

}  // namespace gpuwright::fit
