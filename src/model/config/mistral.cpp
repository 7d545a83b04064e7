// Mistral, Ministral and Mixtral.
#include "model/config/families.h"

namespace gpuwright::model {

// The window is what the config declares; not every engine honours it (llama.cpp keeps the full cache of Mistral 7B).
Decoder read_mistral(const Fields& config) {
  Decoder decoder = llama_like(config);
  const std::int64_t window = config.size_or_zero({"sliding_window"}, 0, kMaxPositions);
  if (!apply_layer_types(config, decoder, window)) apply_window(decoder, window, 0);
  return decoder;
}

Decoder read_mixtral(const Fields& config) {
  Decoder decoder = read_mistral(config);
  decoder.names.router = "block_sparse_moe.gate";
  decoder.names.experts = "block_sparse_moe.experts";
  decoder.names.expert_gate = "w1";
  decoder.names.expert_up = "w3";
  decoder.names.expert_down = "w2";
  const std::int64_t experts = config.size({"num_local_experts"}, 8, kMaxExperts);
  const std::int64_t active = config.size({"num_experts_per_tok"}, 2, experts);
  for (Block& block : decoder.blocks) {
    FeedForward& f = block.layer.feed_forward;
    f = {.width = 0,
         .gated = true,
         .experts = experts,
         .experts_per_token = active,
         .expert_width = f.width,
         .shared_width = 0};
    block.dense = false;
  }
  return decoder;
}

}  // namespace gpuwright::model
