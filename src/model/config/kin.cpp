// Families that are Llama but for biases, norms, fused projections or windows. Sources: the modeling files of
// transformers v5 of each family; modeling_chatglm.py, modeling_internlm2.py, modeling_baichuan.py, modeling_minicpm.py
// and modeling_exaone.py of their repositories.
#include "model/config/families.h"

namespace gpuwright::model {
namespace {

void set_norms(Decoder& decoder, std::vector<std::string_view> norms) {
  for (Block& block : decoder.blocks) block.norms = norms;
}

void set_head_norms(Decoder& decoder) {
  for (Block& block : decoder.blocks) block.q_norm = block.k_norm = block.layer.attention.key_dim;
}

// One norm over all heads together.
void set_wide_norms(Decoder& decoder) {
  for (Block& block : decoder.blocks) {
    const Attention& attention = block.layer.attention;
    block.q_norm = attention.heads * attention.key_dim;
    block.k_norm = attention.kv_heads * attention.key_dim;
  }
}

std::int64_t window_of(const Fields& config, std::int64_t fallback) {
  return config.size_or_zero({"sliding_window"}, fallback, kMaxPositions);
}

}  // namespace

// Phi-3, 3.5 and 4.
Decoder read_phi3(const Fields& config) {
  Decoder decoder = read_mistral(config);
  decoder.names.qkv = "qkv_proj";
  decoder.names.gate_up = "gate_up_proj";
  return decoder;
}

Decoder read_cohere(const Fields& config) {
  Decoder decoder = read_llama(config);
  decoder.tied = config.flag({"tie_word_embeddings"}, true);
  decoder.parallel_block = true;
  set_norms(decoder, {"input_layernorm"});
  if (config.flag({"use_qk_norm"}, false)) set_wide_norms(decoder);
  return decoder;
}

Decoder read_cohere2(const Fields& config) {
  Decoder decoder = read_cohere(config);
  const std::int64_t window = window_of(config, 4096);
  const std::int64_t pattern = config.size({"sliding_window_pattern", "_sliding_window_pattern"}, 4, kMaxLayers);
  if (!apply_layer_types(config, decoder, window)) apply_window(decoder, window, pattern);
  return decoder;
}

Decoder read_olmo(const Fields& config) {
  Decoder decoder = read_llama(config);
  decoder.norm_weight = false;
  return decoder;
}

Decoder read_olmo2(const Fields& config) {
  Decoder decoder = read_llama(config);
  set_norms(decoder, {"post_attention_layernorm", "post_feedforward_layernorm"});
  set_wide_norms(decoder);
  return decoder;
}

Decoder read_olmo3(const Fields& config) {
  Decoder decoder = read_olmo2(config);
  const std::int64_t window = window_of(config, 4096);
  if (!apply_layer_types(config, decoder, window)) apply_window(decoder, window, 4);
  return decoder;
}

Decoder read_nemotron(const Fields& config) {
  Decoder decoder = read_llama(config);
  decoder.norm_bias = true;
  for (Block& block : decoder.blocks) block.layer.feed_forward.gated = false;
  return decoder;
}

Decoder read_glm(const Fields& config) {
  Decoder decoder = llama_like(config);
  decoder.names.gate_up = "gate_up_proj";
  const bool bias = config.flag({"attention_bias"}, true);
  for (Block& block : decoder.blocks) block.qkv_bias = bias;
  return decoder;
}

Decoder read_glm4(const Fields& config) {
  Decoder decoder = read_glm(config);
  set_norms(decoder, {"input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm"});
  return decoder;
}

// ChatGLM2, ChatGLM3 and GLM-4-9B in their first form. The first ChatGLM is built otherwise and has no ffn_hidden_size.
Decoder read_chatglm(const Fields& config) {
  config.required({"ffn_hidden_size"});
  Decoder decoder = llama_like(config);
  Names& names = decoder.names;
  names.embedding = "transformer.embedding.word_embeddings";
  names.blocks = "transformer.encoder.layers";
  names.final_norm = "transformer.encoder.final_layernorm";
  names.head = "transformer.output_layer";
  names.attention = "self_attention";
  names.qkv = "query_key_value";
  names.o = "dense";
  names.gate_up = "dense_h_to_4h";
  names.down = "dense_4h_to_h";
  const bool grouped = config.flag({"multi_query_attention"}, false);
  const bool linear_bias = config.flag({"add_bias_linear"}, false);
  const bool qkv_bias = linear_bias || config.flag({"add_qkv_bias"}, false);
  for (Block& block : decoder.blocks) {
    block.qkv_bias = qkv_bias;
    block.o_bias = block.mlp_bias = linear_bias;
    if (!grouped) block.layer.attention.kv_heads = block.layer.attention.heads;
  }
  return decoder;
}

Decoder read_internlm(const Fields& config) {
  Decoder decoder = llama_like(config);
  const bool bias = config.flag({"bias"}, true);
  for (Block& block : decoder.blocks) block.qkv_bias = block.o_bias = bias;
  return decoder;
}

Decoder read_internlm2(const Fields& config) {
  Decoder decoder = llama_like(config);
  Names& names = decoder.names;
  names.embedding = "model.tok_embeddings";
  names.head = "output";
  names.attention = "attention";
  names.qkv = "wqkv";
  names.o = "wo";
  names.mlp = "feed_forward";
  names.gate = "w1";
  names.up = "w3";
  names.down = "w2";
  const bool bias = config.flag({"bias"}, false);
  for (Block& block : decoder.blocks) {
    block.qkv_bias = block.o_bias = bias;
    block.norms = {"attention_norm", "ffn_norm"};
  }
  return decoder;
}

Decoder read_internlm3(const Fields& config) {
  Decoder decoder = llama_like(config);
  const bool qkv = config.flag({"qkv_bias", "attention_bias"}, false);
  const bool other = config.flag({"bias", "mlp_bias"}, false);
  for (Block& block : decoder.blocks) {
    block.qkv_bias = qkv;
    block.o_bias = block.mlp_bias = other;
  }
  return decoder;
}

Decoder read_baichuan(const Fields& config) {
  Decoder decoder = llama_like(config);
  decoder.names.qkv = "W_pack";
  return decoder;
}

Decoder read_minicpm(const Fields& config) {
  Decoder decoder = read_llama(config);
  decoder.tied = config.flag({"tie_word_embeddings"}, true);
  return decoder;
}

Decoder read_smollm3(const Fields& config) {
  Decoder decoder = read_llama(config);
  decoder.tied = config.flag({"tie_word_embeddings"}, true);
  if (config.flag({"use_sliding_window"}, false)) apply_layer_types(config, decoder, window_of(config, 0));
  return decoder;
}

Decoder read_exaone(const Fields& config) {
  Decoder decoder = read_llama(config);
  Names& names = decoder.names;
  names.embedding = "transformer.wte";
  names.blocks = "transformer.h";
  names.final_norm = "transformer.ln_f";
  names.attention = "attn.attention";
  names.o = "out_proj";
  names.gate = "c_fc_0";
  names.up = "c_fc_1";
  names.down = "c_proj";
  set_norms(decoder, {"ln_1", "ln_2"});
  return decoder;
}

// sliding_window_pattern is a number, or letters: "LLLG" is three local layers and a global one.
Decoder read_exaone4(const Fields& config) {
  Decoder decoder = llama_like(config);
  set_norms(decoder, {"post_attention_layernorm", "post_feedforward_layernorm"});
  set_head_norms(decoder);
  const std::int64_t window = window_of(config, 0);
  if (window == 0 || apply_layer_types(config, decoder, window)) return decoder;
  const std::string letters = config.text({"sliding_window_pattern"});
  const std::int64_t pattern = letters.empty() ? config.size_or_zero({"sliding_window_pattern"}, 4, kMaxLayers)
                                               : static_cast<std::int64_t>(letters.size());
  apply_window(decoder, window, pattern);
  decoder.blocks.back().layer.attention.kind = AttentionKind::full;
  return decoder;
}

Decoder read_seed_oss(const Fields& config) {
  Decoder decoder = llama_like(config);
  const bool qkv = config.flag({"attention_bias"}, true);
  const bool out = config.flag({"attention_out_bias"}, false);
  const bool mlp = config.flag({"mlp_bias"}, false);
  for (Block& block : decoder.blocks) {
    block.qkv_bias = qkv;
    block.o_bias = out;
    block.mlp_bias = mlp;
  }
  return decoder;
}

Decoder read_hunyuan(const Fields& config) {
  Decoder decoder = read_llama(config);
  set_head_norms(decoder);
  return decoder;
}

Decoder read_ernie(const Fields& config) {
  Decoder decoder = llama_like(config, true);
  const bool bias = config.flag({"use_bias"}, false);
  decoder.head_bias = bias;
  for (Block& block : decoder.blocks) block.qkv_bias = block.o_bias = block.mlp_bias = bias;
  return decoder;
}

}  // namespace gpuwright::model
