// Gemma 1, 2 and 3. Sources: configuration_gemma*.py and modeling_gemma*.py of transformers v5.
#include "model/config/families.h"

namespace gpuwright::model {
namespace {

void use_four_norms(Decoder& decoder) {
  for (Block& block : decoder.blocks)
    block.norms = {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                   "post_feedforward_layernorm"};
}

Decoder gemma_like(const Fields& config) {
  Decoder decoder = llama_like(config, true);
  const bool bias = config.flag({"attention_bias"}, false);
  for (Block& block : decoder.blocks) block.qkv_bias = block.o_bias = bias;
  return decoder;
}

}  // namespace

Decoder read_gemma(const Fields& config) {
  return gemma_like(config.with_defaults(R"({"head_dim": 256})"));
}

// Layers alternate: the first slides, the second sees everything.
Decoder read_gemma2(const Fields& config) {
  Decoder decoder = gemma_like(config.with_defaults(R"({"head_dim": 256})"));
  use_four_norms(decoder);
  const std::int64_t window = config.size({"sliding_window"}, 4096, kMaxPositions);
  if (!apply_layer_types(config, decoder, window)) apply_window(decoder, window, 2);
  return decoder;
}

// Five sliding layers, then one that sees everything. Published configs leave out what equals the class's defaults.
Decoder read_gemma3(const Fields& given) {
  const Fields config = given.with_defaults(R"({
      "vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
      "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072,
      "sliding_window": 4096})");
  Decoder decoder = gemma_like(config);
  use_four_norms(decoder);
  for (Block& block : decoder.blocks) block.q_norm = block.k_norm = block.layer.attention.key_dim;
  const std::int64_t window = config.required({"sliding_window"}, kMaxPositions);
  const std::int64_t pattern = config.size({"sliding_window_pattern", "_sliding_window_pattern"}, 6, kMaxLayers);
  if (!apply_layer_types(config, decoder, window)) apply_window(decoder, window, pattern);
  return decoder;
}

}  // namespace gpuwright::model
