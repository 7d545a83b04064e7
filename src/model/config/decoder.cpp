#include "model/config/decoder.h"

#include <fmt/format.h>

#include "model/config/mixers.h"

namespace gpuwright::model {
namespace {

struct Place {
  const Decoder& decoder;
  const Block& block;
  const std::string& prefix;
  std::int32_t layer;
  Plan& plan;

  std::string module(std::string_view part) const { return fmt::format("{}.{}", prefix, part); }
  std::string module(std::string_view part, std::string_view leaf) const {
    return part.empty() ? fmt::format("{}.{}", prefix, leaf) : fmt::format("{}.{}.{}", prefix, part, leaf);
  }
};

void lay_out_norm(const Place& at, std::string_view name, std::int64_t width, bool bias) {
  if (at.decoder.norm_weight) at.plan.norm(at.layer, at.module(name), width, bias);
}

// Multi-head latent attention: DeepSeek-V2 (arXiv 2405.04434), section 2.1; names of modeling_deepseek_v3.py.
void lay_out_latent_attention(const Place& at) {
  const Attention& a = at.block.layer.attention;
  const Names& names = at.decoder.names;
  const std::int64_t hidden = at.decoder.hidden;
  const auto name = [&](std::string_view leaf) { return at.module(names.attention, leaf); };
  const std::int64_t nope_dim = a.key_dim - a.rope_dim;
  if (a.q_lora_rank > 0) {
    at.plan.linear(TensorRole::attention_kv_a, at.layer, name("q_a_proj"), a.q_lora_rank, hidden,
                   {.bias = at.block.qkv_bias});
    at.plan.norm(at.layer, name("q_a_layernorm"), a.q_lora_rank);
    at.plan.linear(TensorRole::attention, at.layer, name("q_b_proj"), a.heads * a.key_dim, a.q_lora_rank);
  } else {
    at.plan.linear(TensorRole::attention, at.layer, name("q_proj"), a.heads * a.key_dim, hidden);
  }
  at.plan.linear(TensorRole::attention_kv_a, at.layer, name("kv_a_proj_with_mqa"), a.kv_lora_rank + a.rope_dim, hidden,
                 {.bias = at.block.qkv_bias});
  at.plan.norm(at.layer, name("kv_a_layernorm"), a.kv_lora_rank);
  at.plan.linear(TensorRole::attention, at.layer, name("kv_b_proj"), a.heads * (nope_dim + a.value_dim),
                 a.kv_lora_rank);
  at.plan.linear(TensorRole::attention, at.layer, name("o_proj"), hidden, a.heads * a.value_dim,
                 {.bias = at.block.o_bias});
}

void lay_out_attention(const Place& at) {
  const Attention& a = at.block.layer.attention;
  const Names& names = at.decoder.names;
  const std::int64_t hidden = at.decoder.hidden;
  const auto name = [&](std::string_view leaf) { return at.module(names.attention, leaf); };
  const std::int64_t q = a.heads * a.key_dim * (at.block.gated_query ? 2 : 1);
  const std::int64_t k = at.block.stores_keys ? a.kv_heads * a.key_dim : 0;
  const std::int64_t v = at.block.stores_keys && !at.block.value_is_key ? a.kv_heads * a.value_dim : 0;
  const LinearOptions in{.bias = at.block.qkv_bias};
  if (!names.qkv.empty()) {
    at.plan.linear(TensorRole::attention, at.layer, name(names.qkv), q + k + v, hidden, in);
  } else {
    at.plan.linear(TensorRole::attention, at.layer, name(names.q), q, hidden, in);
    if (k > 0) at.plan.linear(TensorRole::attention, at.layer, name(names.k), k, hidden, in);
    if (v > 0) at.plan.linear(TensorRole::attention, at.layer, name(names.v), v, hidden, in);
  }
  at.plan.linear(TensorRole::attention, at.layer, name(names.o), hidden, a.heads * a.value_dim,
                 {.bias = at.block.o_bias});
  if (at.block.q_norm > 0) at.plan.norm(at.layer, name("q_norm"), at.block.q_norm, at.block.qk_norm_bias);
  if (at.block.k_norm > 0) at.plan.norm(at.layer, name("k_norm"), at.block.k_norm, at.block.qk_norm_bias);
  if (at.block.sinks > 0) at.plan.vector(TensorRole::attention, at.layer, name("sinks"), at.block.sinks);
}

void lay_out_dense(const Place& at) {
  const FeedForward& f = at.block.layer.feed_forward;
  const Names& names = at.decoder.names;
  const std::int64_t hidden = at.decoder.hidden;
  const auto name = [&](std::string_view leaf) { return at.module(names.mlp, leaf); };
  const LinearOptions options{.bias = at.block.mlp_bias};
  if (!names.gate_up.empty()) {
    at.plan.linear(TensorRole::feed_forward, at.layer, name(names.gate_up), f.width * (f.gated ? 2 : 1), hidden,
                   options);
  } else {
    if (f.gated) at.plan.linear(TensorRole::feed_forward, at.layer, name(names.gate), f.width, hidden, options);
    at.plan.linear(TensorRole::feed_forward, at.layer, name(names.up), f.width, hidden, options);
  }
  at.plan.linear(TensorRole::feed_forward, at.layer, name(names.down), hidden, f.width, options);
}

void lay_out_experts(const Place& at) {
  const FeedForward& f = at.block.layer.feed_forward;
  const Names& names = at.decoder.names;
  const std::int64_t hidden = at.decoder.hidden;
  at.plan.linear(TensorRole::router, at.layer, at.module(names.router), f.experts, hidden,
                 {.bias = at.block.router_bias});
  if (at.block.correction_bias > 0)
    at.plan.vector_f32(TensorRole::router, at.layer, at.module(names.router, "e_score_correction_bias"),
                       at.block.correction_bias);
  const LinearOptions each{.bias = at.block.expert_bias, .copies = f.experts};
  const auto expert = [&](std::string_view leaf) { return at.module(names.experts, leaf); };
  const std::int64_t input = at.block.expert_input > 0 ? at.block.expert_input : hidden;
  if (f.gated) at.plan.linear(TensorRole::expert, at.layer, expert(names.expert_gate), f.expert_width, input, each);
  at.plan.linear(TensorRole::expert, at.layer, expert(names.expert_up), f.expert_width, input, each);
  at.plan.linear(TensorRole::expert, at.layer, expert(names.expert_down), input, f.expert_width, each);
  if (f.shared_width == 0) return;
  const auto shared = [&](std::string_view leaf) { return at.module(names.shared, leaf); };
  const LinearOptions beside{.bias = at.block.shared_bias};
  if (f.gated) at.plan.linear(TensorRole::shared_expert, at.layer, shared(names.gate), f.shared_width, hidden, beside);
  at.plan.linear(TensorRole::shared_expert, at.layer, shared(names.up), f.shared_width, hidden, beside);
  at.plan.linear(TensorRole::shared_expert, at.layer, shared(names.down), hidden, f.shared_width, beside);
  if (at.block.shared_gate)
    at.plan.linear(TensorRole::router, at.layer, fmt::format("{}_gate", at.module(names.shared)), 1, hidden);
}

}  // namespace

Heads heads_of(const Fields& config) {
  Heads heads;
  const std::int64_t hidden = config.required({"hidden_size", "n_embd", "n_embed", "d_model"});
  heads.heads = config.required({"num_attention_heads", "n_head", "n_heads", "num_heads"}, kMaxHeads);
  heads.kv_heads = config.size({"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"},
                               heads.heads, kMaxHeads);
  heads.head_dim = config.has({"head_dim", "kv_channels", "attention_head_dim"})
                       ? config.required({"head_dim", "kv_channels", "attention_head_dim"}, kMaxHeads)
                       : config.quotient(hidden, heads.heads, "hidden_size / num_attention_heads");
  if (heads.kv_heads > heads.heads || heads.heads % heads.kv_heads != 0)
    config.reading().wrong(fmt::format("{}num_key_value_heads is {}, which does not divide num_attention_heads {}",
                                       config.path_of(""), heads.kv_heads, heads.heads));
  return heads;
}

Attention attention_of(const Heads& heads, AttentionKind kind, std::int64_t window) {
  Attention attention;
  attention.kind = kind;
  attention.heads = heads.heads;
  attention.kv_heads = heads.kv_heads;
  attention.key_dim = heads.head_dim;
  attention.value_dim = heads.head_dim;
  attention.window = window;
  return attention;
}

Decoder llama_like(const Fields& config, bool tied_by_default) {
  Decoder decoder;
  decoder.hidden = config.required({"hidden_size", "n_embd", "n_embed", "d_model"});
  decoder.vocabulary = config.required({"vocab_size", "padded_vocab_size"}, kMaxVocabulary);
  decoder.context = config.size_or_zero(
      {"max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_sequence_length", "max_seq_len"}, 0,
      kMaxPositions);
  decoder.tied = config.flag({"tie_word_embeddings"}, tied_by_default);
  Block block;
  block.layer.attention = attention_of(heads_of(config));
  block.layer.feed_forward.width =
      config.size({"intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim"}, 4 * decoder.hidden);
  const std::int64_t layers = config.required({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, kMaxLayers);
  decoder.blocks.assign(static_cast<std::size_t>(layers), block);
  return decoder;
}

bool apply_layer_types(const Fields& config, Decoder& decoder, std::int64_t window) {
  const std::vector<std::string> types = config.texts({"layer_types"});
  if (types.empty()) return false;
  if (types.size() < decoder.blocks.size()) {
    config.reading().wrong(fmt::format("{} has {} entries for {} layers", config.path_of("layer_types"), types.size(),
                                       decoder.blocks.size()));
    return true;
  }
  for (std::size_t i = 0; i < decoder.blocks.size(); ++i) {
    Attention& attention = decoder.blocks[i].layer.attention;
    if (attention.kind == AttentionKind::none) continue;
    const bool sliding = types[i] == "sliding_attention", chunked = types[i] == "chunked_attention";
    if (!sliding && !chunked) continue;
    attention.kind = sliding ? AttentionKind::sliding : AttentionKind::chunked;
    attention.window = window;
  }
  return true;
}

void apply_window(Decoder& decoder, std::int64_t window, std::int64_t pattern) {
  if (window <= 0) return;
  for (std::size_t i = 0; i < decoder.blocks.size(); ++i) {
    if (pattern > 0 && static_cast<std::int64_t>(i + 1) % pattern == 0) continue;
    Attention& attention = decoder.blocks[i].layer.attention;
    attention.kind = AttentionKind::sliding;
    attention.window = window;
  }
}

void lay_out_extra(const Extra& extra, std::string name, std::int32_t layer, Plan& plan) {
  if (extra.is_linear) {
    plan.linear(extra.role, layer, name, extra.rows, extra.columns);
  } else {
    plan.matrix(extra.role, layer, std::move(name), extra.rows, extra.columns);
  }
}

// Everything of a predictor has one role, so that engines that do not load it can leave it out.
void lay_out_predictors(const Decoder& decoder, Plan& plan, Model& model) {
  const std::size_t first = plan.size();
  for (std::int64_t i = 0; i < decoder.predictors; ++i) {
    const auto index = decoder.predictor_prefix.empty() ? static_cast<std::int64_t>(decoder.blocks.size()) + i : i;
    const std::string_view prefix = decoder.predictor_prefix.empty() ? decoder.names.blocks : decoder.predictor_prefix;
    lay_out_block(decoder, decoder.predictor, fmt::format("{}.{}", prefix, index), -1, plan);
  }
  for (const Extra& extra : decoder.predictor_globals) lay_out_extra(extra, std::string(extra.name), -1, plan);
  plan.set_role(first, TensorRole::multi_token_prediction);
  model.multi_token_prediction_layers = decoder.predictors;
}

void lay_out_block(const Decoder& decoder, const Block& block, const std::string& prefix, std::int32_t layer,
                   Plan& plan) {
  const Place at{decoder, block, prefix, layer, plan};
  for (const std::string_view name : block.norms) lay_out_norm(at, name, decoder.hidden, decoder.norm_bias);
  if (block.layer.attention.kind == AttentionKind::latent) {
    lay_out_latent_attention(at);
  } else if (block.layer.attention.kind != AttentionKind::none) {
    lay_out_attention(at);
  }
  if (block.layer.recurrent.kind != RecurrentKind::none && block.mixer.standard)
    lay_out_mixer(decoder.hidden, block, at.module(block.recurrent), layer, plan);
  if (block.layer.feed_forward.experts > 0) lay_out_experts(at);
  if (block.dense && block.layer.feed_forward.width > 0) lay_out_dense(at);
  for (const Extra& extra : block.extras) lay_out_extra(extra, at.module(extra.name), layer, plan);
}

void lay_out(const Decoder& decoder, Plan& plan, Model& model) {
  model.hidden = decoder.hidden;
  model.vocabulary = decoder.vocabulary;
  model.context_length = decoder.context;
  model.tied_embeddings = decoder.tied;
  model.parallel_block = decoder.parallel_block;
  model.cross_attention_layers = decoder.cross_attention_layers;

  const Names& names = decoder.names;
  const std::int64_t embedding = decoder.embedding_width > 0 ? decoder.embedding_width : decoder.hidden;
  plan.matrix(TensorRole::token_embedding, -1, fmt::format("{}.weight", names.embedding),
              decoder.embedding_rows > 0 ? decoder.embedding_rows : decoder.vocabulary, embedding);
  if (decoder.position_rows > 0)
    plan.matrix(TensorRole::position_embedding, -1, fmt::format("{}.weight", names.positions), decoder.position_rows,
                decoder.hidden);
  for (std::size_t i = 0; i < decoder.blocks.size(); ++i) {
    model.layers.push_back(decoder.blocks[i].layer);
    lay_out_block(decoder, decoder.blocks[i], fmt::format("{}.{}", names.blocks, i), static_cast<std::int32_t>(i),
                  plan);
  }
  if (decoder.final_norm && decoder.norm_weight)
    plan.norm(-1, std::string(names.final_norm), decoder.hidden, decoder.norm_bias);
  for (const Extra& extra : decoder.globals) lay_out_extra(extra, std::string(extra.name), -1, plan);
  if (decoder.predictors > 0) lay_out_predictors(decoder, plan, model);
  if (!decoder.has_head) return;
  const std::string head(names.head);
  if (!decoder.tied) {
    plan.linear(TensorRole::output_head, -1, head, decoder.vocabulary, embedding, {.bias = decoder.head_bias});
  } else if (decoder.head_bias) {
    plan.vector(TensorRole::output_head, -1, head + ".bias", decoder.vocabulary);
  }
}

}  // namespace gpuwright::model
