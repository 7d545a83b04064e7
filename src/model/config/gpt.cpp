// The GPT-2 line: learned or rotary positions, LayerNorm with biases, two-matrix feed-forward. Sources:
// modeling_gpt2.py, modeling_gptj.py, modeling_gpt_neox.py, modeling_gpt_bigcode.py, modeling_bloom.py,
// modeling_mpt.py, modeling_opt.py, modeling_falcon.py, modeling_starcoder2.py, modeling_phi.py, modeling_stablelm.py
// of transformers v5.
#include "model/config/families.h"

namespace gpuwright::model {
namespace {

Names transformer_names() {
  Names names;
  names.embedding = "transformer.wte";
  names.positions = "transformer.wpe";
  names.blocks = "transformer.h";
  names.final_norm = "transformer.ln_f";
  names.attention = "attn";
  return names;
}

void set_biases(Decoder& decoder, bool qkv, bool out, bool mlp) {
  for (Block& block : decoder.blocks) {
    block.qkv_bias = qkv;
    block.o_bias = out;
    block.mlp_bias = mlp;
  }
}

void set_ungated(Decoder& decoder) {
  for (Block& block : decoder.blocks) block.layer.feed_forward.gated = false;
}

void set_norms(Decoder& decoder, std::vector<std::string_view> norms) {
  for (Block& block : decoder.blocks) block.norms = norms;
}

void set_kv_heads(Decoder& decoder, std::int64_t heads) {
  for (Block& block : decoder.blocks) block.layer.attention.kv_heads = heads;
}

}  // namespace

Decoder read_gpt2(const Fields& config) {
  Decoder decoder = llama_like(config, true);
  decoder.position_rows = decoder.context;
  decoder.norm_bias = true;
  decoder.names = transformer_names();
  decoder.names.qkv = "c_attn";
  decoder.names.o = decoder.names.down = "c_proj";
  decoder.names.up = "c_fc";
  set_ungated(decoder);
  set_norms(decoder, {"ln_1", "ln_2"});
  set_biases(decoder, true, true, true);
  return decoder;
}

// StarCoder 1 and its kin: GPT-2 with one key/value head.
Decoder read_gpt_bigcode(const Fields& config) {
  Decoder decoder = read_gpt2(config);
  if (config.flag({"multi_query"}, true)) set_kv_heads(decoder, 1);
  return decoder;
}

Decoder read_gptj(const Fields& config) {
  Decoder decoder = llama_like(config);
  decoder.parallel_block = true;
  decoder.norm_bias = decoder.head_bias = true;
  decoder.names = transformer_names();
  decoder.names.o = "out_proj";
  decoder.names.up = "fc_in";
  decoder.names.down = "fc_out";
  set_ungated(decoder);
  set_norms(decoder, {"ln_1"});
  set_biases(decoder, false, false, true);
  return decoder;
}

Decoder read_gpt_neox(const Fields& config) {
  Decoder decoder = llama_like(config);
  decoder.parallel_block = config.flag({"use_parallel_residual"}, true);
  decoder.norm_bias = true;
  Names& names = decoder.names;
  names.embedding = "gpt_neox.embed_in";
  names.blocks = "gpt_neox.layers";
  names.final_norm = "gpt_neox.final_layer_norm";
  names.head = "embed_out";
  names.attention = "attention";
  names.qkv = "query_key_value";
  names.o = "dense";
  names.up = "dense_h_to_4h";
  names.down = "dense_4h_to_h";
  const bool bias = config.flag({"attention_bias"}, true);
  set_ungated(decoder);
  set_biases(decoder, bias, bias, true);
  return decoder;
}

Decoder read_bloom(const Fields& config) {
  Decoder decoder = llama_like(config, true);
  decoder.norm_bias = true;
  if (decoder.context == 0) decoder.context = 2048;
  Names& names = decoder.names;
  names.embedding = "transformer.word_embeddings";
  names.blocks = "transformer.h";
  names.final_norm = "transformer.ln_f";
  names.attention = "self_attention";
  names.qkv = "query_key_value";
  names.o = "dense";
  names.up = "dense_h_to_4h";
  names.down = "dense_4h_to_h";
  set_ungated(decoder);
  set_biases(decoder, true, true, true);
  decoder.globals = {
      {.name = "transformer.word_embeddings_layernorm.weight", .role = TensorRole::norm, .columns = decoder.hidden},
      {.name = "transformer.word_embeddings_layernorm.bias", .role = TensorRole::norm, .columns = decoder.hidden},
  };
  return decoder;
}

Decoder read_mpt(const Fields& config) {
  Decoder decoder = llama_like(config, true);
  decoder.names = transformer_names();
  decoder.names.blocks = "transformer.blocks";
  decoder.names.final_norm = "transformer.norm_f";
  decoder.names.qkv = "Wqkv";
  decoder.names.o = "out_proj";
  decoder.names.mlp = "ffn";
  const Fields attention = config.child({"attn_config"});
  set_ungated(decoder);
  set_norms(decoder, {"norm_1", "norm_2"});
  if (attention.has({"kv_n_heads"})) set_kv_heads(decoder, attention.required({"kv_n_heads"}, kMaxHeads));
  const std::int64_t ratio = config.size({"expansion_ratio"}, 4, 64);
  for (Block& block : decoder.blocks) block.layer.feed_forward.width = ratio * decoder.hidden;
  return decoder;
}

// The position table has two rows more than positions. OPT-350m embeds in 512 and projects, and has no final norm.
Decoder read_opt(const Fields& config) {
  Decoder decoder = llama_like(config, true);
  decoder.position_rows = decoder.context + 2;
  decoder.norm_bias = true;
  decoder.final_norm = config.flag({"do_layer_norm_before"}, true) && !config.flag({"_remove_final_layer_norm"}, false);
  Names& names = decoder.names;
  names.embedding = "model.decoder.embed_tokens";
  names.positions = "model.decoder.embed_positions";
  names.blocks = "model.decoder.layers";
  names.final_norm = "model.decoder.final_layer_norm";
  names.o = "out_proj";
  names.mlp = "";
  names.up = "fc1";
  names.down = "fc2";
  const bool bias = config.flag({"enable_bias"}, true);
  set_ungated(decoder);
  set_norms(decoder, {"self_attn_layer_norm", "final_layer_norm"});
  set_biases(decoder, bias, bias, bias);
  const std::int64_t width = config.size({"word_embed_proj_dim"}, decoder.hidden);
  if (width == decoder.hidden) return decoder;
  decoder.embedding_width = width;
  decoder.globals = {
      {.name = "model.decoder.project_in.weight", .rows = decoder.hidden, .columns = width},
      {.name = "model.decoder.project_out.weight", .rows = width, .columns = decoder.hidden},
  };
  return decoder;
}

// 7B: one key/value head and one norm; 40B and 180B ("new decoder architecture"): groups and two norms.
Decoder read_falcon(const Fields& config) {
  Decoder decoder = llama_like(config, true);
  const bool grouped = config.flag({"new_decoder_architecture"}, false);
  const bool parallel = config.flag({"parallel_attn"}, true);
  const bool bias = config.flag({"bias"}, false);
  decoder.parallel_block = parallel || grouped;
  decoder.norm_bias = true;
  Names& names = decoder.names;
  names.embedding = "transformer.word_embeddings";
  names.blocks = "transformer.h";
  names.final_norm = "transformer.ln_f";
  names.attention = "self_attention";
  names.qkv = "query_key_value";
  names.o = "dense";
  names.up = "dense_h_to_4h";
  names.down = "dense_4h_to_h";
  set_ungated(decoder);
  set_biases(decoder, bias, bias, bias);
  const std::int64_t norms = config.size({"num_ln_in_parallel_attn"}, grouped ? 2 : 1, 2);
  if (grouped && norms == 2) {
    set_norms(decoder, {"ln_attn", "ln_mlp"});
  } else if (decoder.parallel_block) {
    set_norms(decoder, {"input_layernorm"});
  }
  const std::int64_t heads = decoder.blocks.front().layer.attention.heads;
  if (grouped) return decoder;
  set_kv_heads(decoder, config.flag({"multi_query"}, true) ? 1 : heads);
  return decoder;
}

Decoder read_starcoder2(const Fields& config) {
  Decoder decoder = read_mistral(config);
  decoder.tied = config.flag({"tie_word_embeddings"}, true);
  decoder.norm_bias = true;
  decoder.names.up = "c_fc";
  decoder.names.down = "c_proj";
  const bool bias = config.flag({"use_bias"}, true);
  set_ungated(decoder);
  set_biases(decoder, bias, bias, bias);
  return decoder;
}

// Phi 1, 1.5 and 2.
Decoder read_phi(const Fields& config) {
  Decoder decoder = llama_like(config);
  decoder.parallel_block = true;
  decoder.norm_bias = decoder.head_bias = true;
  decoder.names.final_norm = "model.final_layernorm";
  decoder.names.o = "dense";
  decoder.names.up = "fc1";
  decoder.names.down = "fc2";
  set_ungated(decoder);
  set_norms(decoder, {"input_layernorm"});
  set_biases(decoder, true, true, true);
  if (!config.flag({"qk_layernorm"}, false)) return decoder;
  for (Block& block : decoder.blocks) {
    block.q_norm = block.k_norm = block.layer.attention.key_dim;
    block.qk_norm_bias = true;
  }
  return decoder;
}

Decoder read_stablelm(const Fields& config) {
  Decoder decoder = llama_like(config);
  decoder.norm_bias = true;
  decoder.parallel_block = config.flag({"use_parallel_residual"}, false);
  set_biases(decoder, config.flag({"use_qkv_bias"}, false), false, false);
  if (decoder.parallel_block) set_norms(decoder, {"input_layernorm"});
  if (!config.flag({"qk_layernorm"}, false)) return decoder;
  for (Block& block : decoder.blocks) {  // one norm a head
    const Attention& attention = block.layer.attention;
    block.q_norm = attention.heads * attention.key_dim;
    block.k_norm = attention.kv_heads * attention.key_dim;
  }
  return decoder;
}

}  // namespace gpuwright::model
