// Llama 1 to 4 and the families that are Llama under another name.
#include "model/config/families.h"

namespace gpuwright::model {

Decoder read_llama(const Fields& config) {
  Decoder decoder = llama_like(config);
  const bool attention_bias = config.flag({"attention_bias"}, false);
  const bool mlp_bias = config.flag({"mlp_bias"}, false);
  for (Block& block : decoder.blocks) {
    block.qkv_bias = block.o_bias = attention_bias;
    block.mlp_bias = mlp_bias;
  }
  return decoder;
}

// Three of four layers attend within chunks and use RoPE, the fourth sees everything and does not (iRoPE). Every
// interleave_moe_layer_step-th layer is a mixture of experts with one shared expert. modeling_llama4.py.
Decoder read_llama4(const Fields& config) {
  Decoder decoder = llama_like(config);
  const std::int64_t chunk = config.size_or_zero({"attention_chunk_size"}, 8192, kMaxPositions);
  const std::int64_t step = config.size({"interleave_moe_layer_step"}, 1, kMaxLayers);
  const std::int64_t experts = config.size_or_zero({"num_local_experts"}, 16, kMaxExperts);
  const std::int64_t active = config.size({"num_experts_per_tok"}, 1, kMaxExperts);
  const std::int64_t expert_width = config.size({"intermediate_size"}, 8192);
  const std::int64_t dense_width = config.size({"intermediate_size_mlp"}, 16384);
  const bool bias = config.flag({"attention_bias"}, false);
  const std::vector<std::int64_t> moe_layers = config.sizes({"moe_layers"}, kMaxLayers);
  const std::vector<std::int64_t> rope_layers = config.sizes({"no_rope_layers"}, 1);
  const std::int64_t rope_interval = config.size({"no_rope_layer_interval"}, 4, kMaxLayers);

  decoder.names.mlp = "feed_forward";
  decoder.names.router = "feed_forward.router";
  decoder.names.experts = "feed_forward.experts";
  decoder.names.shared = "feed_forward.shared_expert";
  std::vector<bool> is_moe(decoder.blocks.size(), false);
  for (const std::int64_t index : moe_layers)
    if (static_cast<std::size_t>(index) < is_moe.size()) is_moe[static_cast<std::size_t>(index)] = true;

  for (std::size_t i = 0; i < decoder.blocks.size(); ++i) {
    Block& block = decoder.blocks[i];
    const auto number = static_cast<std::int64_t>(i) + 1;
    block.qkv_bias = block.o_bias = bias;
    // no_rope_layers holds 1 where the layer uses RoPE, in spite of its name.
    const bool uses_rope = i < rope_layers.size() ? rope_layers[i] != 0 : number % rope_interval != 0;
    if (uses_rope && chunk > 0) {
      block.layer.attention.kind = AttentionKind::chunked;
      block.layer.attention.window = chunk;
    }
    const bool moe = moe_layers.empty() ? number % step == 0 : is_moe[i];
    FeedForward& f = block.layer.feed_forward;
    if (!moe || experts == 0) {
      f.width = dense_width;
      continue;
    }
    f = {.width = 0,
         .gated = true,
         .experts = experts,
         .experts_per_token = active,
         .expert_width = expert_width,
         .shared_width = expert_width};
    block.dense = false;
  }
  apply_layer_types(config, decoder, chunk);
  return decoder;
}

// Llama 3.2 Vision: cross_attention_layers of the blocks look at the image instead of the text.
Decoder read_mllama(const Fields& given) {
  const Fields config = given.with_defaults(R"({"vocab_size": 128256, "hidden_size": 4096, "num_hidden_layers": 40,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
      "max_position_embeddings": 131072, "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38]})");
  Decoder decoder = llama_like(config);
  decoder.embedding_rows = decoder.vocabulary + 8;
  for (const std::int64_t index : config.sizes({"cross_attention_layers"}, kMaxLayers)) {
    if (static_cast<std::size_t>(index) >= decoder.blocks.size()) {
      config.reading().wrong("cross_attention_layers names a layer that does not exist");
      break;
    }
    Block& block = decoder.blocks[static_cast<std::size_t>(index)];
    const Attention attention = block.layer.attention;
    if (attention.kind == AttentionKind::none) continue;
    const std::int64_t q = attention.heads * attention.key_dim, kv = attention.kv_heads * attention.key_dim;
    Layer cross;
    cross.attention = attention;
    decoder.cross_attention_layers.push_back(cross);
    block.layer.attention = {};
    const auto linear = [](std::string_view name, std::int64_t rows, std::int64_t columns) {
      return Extra{.name = name, .role = TensorRole::attention, .rows = rows, .columns = columns, .is_linear = true};
    };
    block.extras = {
        linear("cross_attn.q_proj", q, decoder.hidden),
        linear("cross_attn.k_proj", kv, decoder.hidden),
        linear("cross_attn.v_proj", kv, decoder.hidden),
        linear("cross_attn.o_proj", decoder.hidden, q),
        {.name = "cross_attn.head_norms", .role = TensorRole::norm, .rows = 2, .columns = attention.key_dim},
        {.name = "cross_attn.gates", .role = TensorRole::other, .columns = 2}};
  }
  return decoder;
}

}  // namespace gpuwright::model
