// A job in llama.cpp's own terms: what its options and defaults, which changed over time, make of it.
#pragma once

#include <cstdint>
#include <string>

#include "fit/job.h"
#include "model/model.h"

namespace gpuwright::fit {

struct LlamaSettings {
  std::int64_t context = 0;       // n_ctx of all sequences, padded
  std::int64_t sequences = 1;     // n_seq_max
  std::int64_t streams = 1;       // separate caches: 1 when unified
  std::int64_t ubatch = 512;      // n_ubatch
  std::int64_t full_cells = 0;    // of one stream, layers without a window
  std::int64_t swa_window = 0;    // of the model; 0 when this engine keeps a full cache for all layers
  std::int64_t swa_cells = 0;     // of one stream, layers with one
  std::int64_t state_copies = 1;  // of recurrent state: the live one and those for speculative rollback
  std::int64_t gpu_layers = 0;    // offloaded, the output layer counted as one
  bool flash_attention = true;
  bool cache = true;  // encoders keep none in newer versions
  model::Dtype key_type = model::Dtype::f16;
  model::Dtype value_type = model::Dtype::f16;

  enum class Latent : std::uint8_t { keys_only, keys_and_values, expanded };
  Latent latent = Latent::keys_only;  // what MLA stores

  // Of the graph; see GraphPlan.
  bool half_mask = false;
  bool fused_glu = true;
  bool both_embeddings = true;
  bool rotated_cache = true;
  bool fused_delta_net = true;
  bool old_qkv_copies = false;

  std::vector<std::string> notes;
};

// bad_input: options that llama.cpp itself refuses (a quantised V cache without flash attention). `memory` is that of
// all GPUs: ollama's default context goes by it.
Result<LlamaSettings> llama_settings(const model::Model& model, const Job& job, Bytes memory);

// Cells of the cache of one stream for this layer.
std::int64_t cells_of(const LlamaSettings& settings, const model::Attention& attention);
bool slides(const LlamaSettings& settings, const model::Attention& attention);

// Cache of one layer, all streams.
Bytes layer_cache_bytes(const LlamaSettings& settings, const model::Attention& attention);
// Recurrent state of one layer, all sequences: f32 in llama.cpp.
Bytes layer_state_bytes(const LlamaSettings& settings, const model::Recurrent& recurrent);

}  // namespace gpuwright::fit
