// Encoder-decoders: T5, BART and Whisper. The decoder's blocks are Model::layers; each also attends to the encoder,
// whose keys and values are kept once a sequence (Model::cross_attention_layers). Sources: modeling_t5.py,
// modeling_bart.py, modeling_mbart.py, modeling_whisper.py of transformers v5.
#include <fmt/format.h>

#include "model/config/decoder.h"
#include "model/config/towers.h"

namespace gpuwright::model {
namespace {

// One side of an encoder-decoder.
struct Side {
  std::string prefix;
  TensorRole role = TensorRole::other;
  std::int64_t layers = 0, hidden = 0, heads = 0, head_dim = 0, width = 0;
  bool gated = false;
  bool crosses = false;
  bool biases = false;
  bool key_bias = false;
  bool norm_bias = false;
};

void lay_out_attention(const Side& side, const std::string& module, std::int32_t layer, TensorRole role, Plan& plan) {
  const std::int64_t inner = side.heads * side.head_dim;
  plan.linear(role, layer, module + ".q_proj", inner, side.hidden, {.bias = side.biases});
  plan.linear(role, layer, module + ".k_proj", inner, side.hidden, {.bias = side.key_bias});
  plan.linear(role, layer, module + ".v_proj", inner, side.hidden, {.bias = side.biases});
  plan.linear(role, layer, module + ".out_proj", side.hidden, inner, {.bias = side.biases});
}

void lay_out_side(const Side& side, Plan& plan) {
  const bool encoder = side.role == TensorRole::encoder;
  const TensorRole attention = encoder ? TensorRole::encoder : TensorRole::attention;
  const TensorRole ffn = encoder ? TensorRole::encoder : TensorRole::feed_forward;
  const LinearOptions bias{.bias = side.biases};
  for (std::int64_t i = 0; i < side.layers; ++i) {
    const auto layer = encoder ? -1 : static_cast<std::int32_t>(i);
    const std::string block = fmt::format("{}.layers.{}", side.prefix, i);
    lay_out_attention(side, block + ".self_attn", layer, attention, plan);
    plan.norm(layer, block + ".self_attn_layer_norm", side.hidden, side.norm_bias);
    if (side.crosses) {
      lay_out_attention(side, block + ".encoder_attn", layer, attention, plan);
      plan.norm(layer, block + ".encoder_attn_layer_norm", side.hidden, side.norm_bias);
    }
    if (side.gated) plan.linear(ffn, layer, block + ".gate", side.width, side.hidden, bias);
    plan.linear(ffn, layer, block + ".fc1", side.width, side.hidden, bias);
    plan.linear(ffn, layer, block + ".fc2", side.hidden, side.width, bias);
    plan.norm(layer, block + ".final_layer_norm", side.hidden, side.norm_bias);
  }
}

void describe(const Side& encoder, const Side& decoder, std::int64_t positions, Model& model) {
  model.kind = ModelKind::encoder_decoder;
  model.hidden = decoder.hidden;
  model.encoder = Encoder{.layers = encoder.layers,
                          .hidden = encoder.hidden,
                          .heads = encoder.heads,
                          .feed_forward_width = encoder.width,
                          .positions = positions};
  Layer layer;
  layer.attention = attention_of({.heads = decoder.heads, .kv_heads = decoder.heads, .head_dim = decoder.head_dim});
  layer.feed_forward = {.width = decoder.width, .gated = decoder.gated};
  model.layers.assign(static_cast<std::size_t>(decoder.layers), layer);
  layer.feed_forward = {};
  model.cross_attention_layers.assign(static_cast<std::size_t>(decoder.layers), layer);
}

// BART and Whisper name their sides alike.
Side side_of(const Fields& config, std::string name, std::int64_t hidden) {
  Side side;
  side.prefix = "model." + name;
  side.hidden = hidden;
  side.layers = config.required({name + "_layers"}, kMaxLayers);
  side.heads = config.required({name + "_attention_heads"}, kMaxHeads);
  side.head_dim = config.quotient(hidden, side.heads, "d_model / attention_heads");
  side.width = config.required({name + "_ffn_dim"});
  side.biases = side.norm_bias = true;
  side.role = name == "encoder" ? TensorRole::encoder : TensorRole::other;
  side.crosses = name == "decoder";
  return side;
}

}  // namespace

void read_t5(const Fields& config, Plan& plan, Model& model) {
  Side encoder;
  encoder.prefix = "encoder";
  encoder.role = TensorRole::encoder;
  encoder.hidden = config.required({"d_model"});
  encoder.layers = config.required({"num_layers"}, kMaxLayers);
  encoder.heads = config.required({"num_heads"}, kMaxHeads);
  encoder.head_dim = config.size({"d_kv"}, 64, kMaxHeads);
  encoder.width = config.required({"d_ff"});
  encoder.gated =
      config.text({"feed_forward_proj"}, "relu").starts_with("gated-") || config.flag({"is_gated_act"}, false);
  Side decoder = encoder;
  decoder.prefix = "decoder";
  decoder.role = TensorRole::other;
  decoder.crosses = true;
  decoder.layers = config.size({"num_decoder_layers"}, encoder.layers, kMaxLayers);

  model.vocabulary = config.required({"vocab_size"}, kMaxVocabulary);
  model.context_length = config.size_or_zero({"n_positions"}, 0, kMaxPositions);
  model.tied_embeddings = config.flag({"tie_word_embeddings"}, true);
  plan.matrix(TensorRole::token_embedding, -1, "shared.weight", model.vocabulary, encoder.hidden);
  const std::int64_t buckets = config.size({"relative_attention_num_buckets"}, 32, 1 << 16);
  for (const Side* side : {&encoder, &decoder}) {
    plan.matrix(TensorRole::position_embedding, -1, side->prefix + ".relative_attention_bias.weight", buckets,
                side->heads);
    lay_out_side(*side, plan);
    plan.norm(-1, side->prefix + ".final_layer_norm", side->hidden);
  }
  if (!model.tied_embeddings) plan.linear(TensorRole::output_head, -1, "lm_head", model.vocabulary, decoder.hidden);
  describe(encoder, decoder, model.context_length, model);
}

// The position tables have two rows more than positions. mBART adds a norm after each side.
void read_bart(const Fields& config, Plan& plan, Model& model) {
  const std::int64_t hidden = config.required({"d_model"});
  Side encoder = side_of(config, "encoder", hidden), decoder = side_of(config, "decoder", hidden);
  encoder.key_bias = decoder.key_bias = true;
  const bool outer = config.text({"model_type"}) == "mbart";
  model.vocabulary = config.required({"vocab_size"}, kMaxVocabulary);
  model.context_length = config.size({"max_position_embeddings"}, 1024, kMaxWidth);
  model.tied_embeddings = true;
  plan.matrix(TensorRole::token_embedding, -1, "model.shared.weight", model.vocabulary, hidden);
  for (const Side* side : {&encoder, &decoder}) {
    plan.matrix(TensorRole::position_embedding, -1, side->prefix + ".embed_positions.weight", model.context_length + 2,
                hidden);
    plan.norm(-1, side->prefix + ".layernorm_embedding", hidden, true);
    lay_out_side(*side, plan);
    if (outer) plan.norm(-1, side->prefix + ".layer_norm", hidden, true);
  }
  plan.vector(TensorRole::output_head, -1, "final_logits_bias", model.vocabulary);
  describe(encoder, decoder, model.context_length, model);
}

// Two convolutions over mel frames, the second of stride 2, lead to max_source_positions.
void read_whisper(const Fields& config, Plan& plan, Model& model) {
  const std::int64_t hidden = config.required({"d_model"});
  const Side encoder = side_of(config, "encoder", hidden), decoder = side_of(config, "decoder", hidden);
  const std::int64_t mels = config.size({"num_mel_bins"}, 80, 1 << 12);
  const std::int64_t source = config.size({"max_source_positions"}, 1500, kMaxWidth);
  model.vocabulary = config.required({"vocab_size"}, kMaxVocabulary);
  model.context_length = config.size({"max_target_positions"}, 448, kMaxWidth);
  model.tied_embeddings = true;
  const TensorRole role = TensorRole::encoder;
  plan.matrix(role, -1, "model.encoder.conv1.weight", hidden, 3 * mels);
  plan.vector(role, -1, "model.encoder.conv1.bias", hidden);
  plan.matrix(role, -1, "model.encoder.conv2.weight", hidden, 3 * hidden);
  plan.vector(role, -1, "model.encoder.conv2.bias", hidden);
  plan.matrix(TensorRole::position_embedding, -1, "model.encoder.embed_positions.weight", source, hidden);
  lay_out_side(encoder, plan);
  plan.norm(-1, "model.encoder.layer_norm", hidden, true);
  plan.matrix(TensorRole::token_embedding, -1, "model.decoder.embed_tokens.weight", model.vocabulary, hidden);
  plan.matrix(TensorRole::position_embedding, -1, "model.decoder.embed_positions.weight", model.context_length, hidden);
  lay_out_side(decoder, plan);
  plan.norm(-1, "model.decoder.layer_norm", hidden, true);
  describe(encoder, decoder, source, model);
}

}  // namespace gpuwright::model
