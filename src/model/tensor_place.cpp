// What a tensor is for, told from its name alone. A name is a path of components ("model.layers.3.mlp.experts.17.
// down_proj.weight"); each component that is known says something, with a rank: where a block stands ("self_attn")
// is weaker than what the matrix is ("q_proj"), which is weaker than being an expert, a norm, part of a tower, or a
// side tensor of a quantisation. The highest rank wins; among equals the later component.
//
// Components are looked up in a hash table that is built at compile time, so that 91,000 names take a few
// milliseconds. Sources of the names: the modelling files of huggingface/transformers and of the checkpoints named in
// tensor_place_test.cpp; for GGUF gguf-py/gguf/constants.py (TENSOR_NAMES) of ggml-org/llama.cpp.
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>

#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

enum Rank : std::uint8_t {
  kNothing,
  kBlock,    // the block a matrix stands in
  kMatrix,   // what the matrix is
  kLatent,   // MLA down-projections, which are matrices too
  kMixture,  // experts, routers
  kNorm,
  kEncoder,  // the whole of an encoder
  kEdge,     // embeddings and heads
  kTower,    // vision or audio
  kExtra,    // multi-token prediction
  kSide,     // scales, zero points and other company of quantised weights
};

struct Word {
  std::string_view text;
  TensorRole role;
  Rank rank;
};

using enum TensorRole;

constexpr Word kWords[] = {
    // Blocks
    {"self_attn", attention, kBlock},
    {"self_attention", attention, kBlock},
    {"attention", attention, kBlock},
    {"attn", attention, kBlock},
    {"SelfAttention", attention, kBlock},
    {"EncDecAttention", attention, kBlock},
    {"encoder_attn", attention, kBlock},
    {"cross_attn", attention, kBlock},
    {"crossattention", attention, kBlock},
    {"temporal_block", attention, kBlock},
    {"mlp", feed_forward, kBlock},
    {"ffn", feed_forward, kBlock},
    {"feed_forward", feed_forward, kBlock},
    {"feedforward", feed_forward, kBlock},
    {"mlp_block", feed_forward, kBlock},
    {"DenseReluDense", feed_forward, kBlock},
    {"block_sparse_moe", feed_forward, kBlock},
    {"moe", feed_forward, kBlock},
    {"residual_mlp", feed_forward, kBlock},
    {"channel_mixer", feed_forward, kBlock},
    {"mixer", recurrent, kBlock},
    {"mamba", recurrent, kBlock},
    {"ssm", recurrent, kBlock},
    {"linear_attn", recurrent, kBlock},
    {"delta_net", recurrent, kBlock},
    {"recurrent_block", recurrent, kBlock},
    {"rg_lru", recurrent, kBlock},
    {"time_mix", recurrent, kBlock},
    {"att", recurrent, kBlock},
    {"conv", recurrent, kBlock},
    {"short_conv", recurrent, kBlock},
    {"shortconv", recurrent, kBlock},
    {"norm_attn_norm", attention, kBlock},
    // Matrices: attention
    {"q_proj", attention, kMatrix},
    {"k_proj", attention, kMatrix},
    {"v_proj", attention, kMatrix},
    {"o_proj", attention, kMatrix},
    {"qkv_proj", attention, kMatrix},
    {"query_key_value", attention, kMatrix},
    {"c_attn", attention, kMatrix},
    {"W_pack", attention, kMatrix},
    {"Wqkv", attention, kMatrix},
    {"wqkv", attention, kMatrix},
    {"in_proj_weight", attention, kMatrix},
    {"in_proj_bias", attention, kMatrix},
    {"wq", attention, kMatrix},
    {"wk", attention, kMatrix},
    {"wv", attention, kMatrix},
    {"wo", attention, kMatrix},
    {"sinks", attention, kMatrix},
    {"kv_b_proj", attention, kMatrix},
    {"q_b_proj", attention, kMatrix},
    {"relative_attention_bias", attention, kMatrix},
    {"attn_q", attention, kMatrix},
    {"attn_k", attention, kMatrix},
    {"attn_v", attention, kMatrix},
    {"attn_qkv", attention, kMatrix},
    {"attn_output", attention, kMatrix},
    {"attn_out", attention, kMatrix},
    {"attn_gate", attention, kMatrix},
    {"attn_sinks", attention, kMatrix},
    {"attn_q_b", attention, kMatrix},
    {"attn_kv_b", attention, kMatrix},
    {"attn_k_b", attention, kMatrix},
    {"attn_v_b", attention, kMatrix},
    {"attn_rel_b", attention, kMatrix},
    {"cross_attn_q", attention, kMatrix},
    {"cross_attn_k", attention, kMatrix},
    {"cross_attn_v", attention, kMatrix},
    {"cross_attn_o", attention, kMatrix},
    {"q_a_proj", attention_kv_a, kLatent},
    {"kv_a_proj", attention_kv_a, kLatent},
    {"kv_a_proj_with_mqa", attention_kv_a, kLatent},
    {"fused_qkv_a_proj_with_mqa", attention_kv_a, kLatent},
    {"wq_a", attention_kv_a, kLatent},
    {"wkv_a", attention_kv_a, kLatent},
    {"attn_q_a", attention_kv_a, kLatent},
    {"attn_kv_a_mqa", attention_kv_a, kLatent},
    {"indexer", attention_kv_a, kLatent},
    // Matrices: feed-forward
    {"gate_proj", feed_forward, kMatrix},
    {"up_proj", feed_forward, kMatrix},
    {"down_proj", feed_forward, kMatrix},
    {"gate_up_proj", feed_forward, kMatrix},
    {"fc1", feed_forward, kMatrix},
    {"fc2", feed_forward, kMatrix},
    {"fc_in", feed_forward, kMatrix},
    {"fc_out", feed_forward, kMatrix},
    {"c_fc", feed_forward, kMatrix},
    {"dense_h_to_4h", feed_forward, kMatrix},
    {"dense_4h_to_h", feed_forward, kMatrix},
    {"w1", feed_forward, kMatrix},
    {"w2", feed_forward, kMatrix},
    {"w3", feed_forward, kMatrix},
    {"wi", feed_forward, kMatrix},
    {"wi_0", feed_forward, kMatrix},
    {"wi_1", feed_forward, kMatrix},
    {"intermediate", feed_forward, kMatrix},
    {"ffn_up", feed_forward, kMatrix},
    {"ffn_gate", feed_forward, kMatrix},
    {"ffn_down", feed_forward, kMatrix},
    {"channel_mix_key", feed_forward, kMatrix},
    {"channel_mix_value", feed_forward, kMatrix},
    {"channel_mix_receptance", feed_forward, kMatrix},
    // Matrices: recurrent
    {"A_log", recurrent, kMatrix},
    {"A_logs", recurrent, kMatrix},
    {"dt_bias", recurrent, kMatrix},
    {"dt_proj", recurrent, kMatrix},
    {"x_proj", recurrent, kMatrix},
    {"conv1d", recurrent, kMatrix},
    {"in_proj_qkvz", recurrent, kMatrix},
    {"in_proj_qkv", recurrent, kMatrix},
    {"in_proj_ba", recurrent, kMatrix},
    {"ssm_in", recurrent, kMatrix},
    {"ssm_out", recurrent, kMatrix},
    {"ssm_conv1d", recurrent, kMatrix},
    {"ssm_x", recurrent, kMatrix},
    {"ssm_dt", recurrent, kMatrix},
    {"ssm_a", recurrent, kMatrix},
    {"ssm_d", recurrent, kMatrix},
    {"ssm_ba", recurrent, kMatrix},
    {"ssm_beta_alpha", recurrent, kMatrix},
    {"ssm_beta", recurrent, kMatrix},
    {"ssm_alpha", recurrent, kMatrix},
    // Mixtures of experts
    {"experts", expert, kMixture},
    {"ffn_up_exps", expert, kMixture},
    {"ffn_gate_exps", expert, kMixture},
    {"ffn_down_exps", expert, kMixture},
    {"ffn_gate_up_exps", expert, kMixture},
    {"input_linear", expert, kMixture},
    {"output_linear", expert, kMixture},
    {"shared_expert", shared_expert, kMixture},
    {"shared_experts", shared_expert, kMixture},
    {"shared_mlp", shared_expert, kMixture},
    {"ffn_up_shexp", shared_expert, kMixture},
    {"ffn_gate_shexp", shared_expert, kMixture},
    {"ffn_down_shexp", shared_expert, kMixture},
    {"router", router, kMixture},
    {"gate_inp", router, kMixture},
    {"ffn_gate_inp", router, kMixture},
    {"ffn_gate_inp_shexp", router, kMixture},
    {"shared_expert_gate", router, kMixture},
    {"e_score_correction_bias", router, kMixture},
    {"exp_probs_b", router, kMixture},
    // Norms; words that end in "norm" are found without being listed
    {"ln_1", norm, kNorm},
    {"ln_2", norm, kNorm},
    {"ln_f", norm, kNorm},
    {"ln1", norm, kNorm},
    {"ln2", norm, kNorm},
    {"ln_attn", norm, kNorm},
    {"ln_mlp", norm, kNorm},
    {"norm1", norm, kNorm},
    {"norm2", norm, kNorm},
    {"norm_f", norm, kNorm},
    {"norm_1", norm, kNorm},
    {"norm_2", norm, kNorm},
    {"LayerNorm", norm, kNorm},
    {"attn_norm_2", norm, kNorm},
    // An encoder of its own
    {"encoder", encoder, kEncoder},
    {"enc", encoder, kEncoder},
    // Edges
    {"embed_tokens", token_embedding, kEdge},
    {"embed_tokens_per_layer", token_embedding, kEdge},
    {"wte", token_embedding, kEdge},
    {"word_embeddings", token_embedding, kEdge},
    {"tok_embeddings", token_embedding, kEdge},
    {"embed_in", token_embedding, kEdge},
    {"embedding", token_embedding, kEdge},
    {"embeddings", token_embedding, kEdge},
    {"emb", token_embedding, kEdge},
    {"shared", token_embedding, kEdge},
    {"token_embedding", token_embedding, kEdge},
    {"token_embd", token_embedding, kEdge},
    {"per_layer_token_embd", token_embedding, kEdge},
    {"wpe", position_embedding, kEdge},
    {"embed_positions", position_embedding, kEdge},
    {"position_embeddings", position_embedding, kEdge},
    {"position_embedding", position_embedding, kEdge},
    {"token_type_embeddings", position_embedding, kEdge},
    {"position_embd", position_embedding, kEdge},
    {"token_types", position_embedding, kEdge},
    {"patch_embeddings", encoder, kEdge},
    {"cls_token", encoder, kEdge},
    {"lm_head", output_head, kEdge},
    {"embed_out", output_head, kEdge},
    {"proj_out", output_head, kEdge},
    // Towers
    {"vision_tower", vision, kTower},
    {"vision_model", vision, kTower},
    {"vision_encoder", vision, kTower},
    {"vision_embed_tokens", vision, kTower},
    {"visual", vision, kTower},
    {"visual_model", vision, kTower},
    {"image_encoder", vision, kTower},
    {"img_processor", vision, kTower},
    {"img_projection", vision, kTower},
    {"image_newline", vision, kTower},
    {"multi_modal_projector", vision, kTower},
    {"mm_projector", vision, kTower},
    {"visual_projection", vision, kTower},
    {"patch_merge_mlp", vision, kTower},
    {"patch_merger", vision, kTower},
    {"connector", vision, kTower},
    {"aligner", vision, kTower},
    {"resampler", vision, kTower},
    {"vpm", vision, kTower},
    {"apm", vision, kTower},
    {"mlp1", vision, kTower},
    {"embed_vision", vision, kTower},
    {"embed_audio", vision, kTower},
    {"audio_tower", vision, kTower},
    {"audio_encoder", vision, kTower},
    {"embed_tokens_extend", vision, kTower},
    {"audio_projector", vision, kTower},
    {"v", vision, kTower},
    {"a", vision, kTower},
    {"mm", vision, kTower},
    // Multi-token prediction
    {"mtp", multi_token_prediction, kExtra},
    {"mtp_layers", multi_token_prediction, kExtra},
    {"mtp_block", multi_token_prediction, kExtra},
    {"nextn", multi_token_prediction, kExtra},
    {"eh_proj", multi_token_prediction, kExtra},
    {"enorm", multi_token_prediction, kExtra},
    {"hnorm", multi_token_prediction, kExtra},
    {"shared_head", multi_token_prediction, kExtra},
    // Company of quantised weights
    {"weight_scale", quantization, kSide},
    {"weight_scale_inv", quantization, kSide},
    {"weight_scale_2", quantization, kSide},
    {"weight_global_scale", quantization, kSide},
    {"weight_zero_point", quantization, kSide},
    {"weight_shape", quantization, kSide},
    {"weight_g_idx", quantization, kSide},
    {"weight_scale_second", quantization, kSide},
    {"input_scale", quantization, kSide},
    {"input_global_scale", quantization, kSide},
    {"input_zero_point", quantization, kSide},
    {"output_scale", quantization, kSide},
    {"k_scale", quantization, kSide},
    {"v_scale", quantization, kSide},
    {"scale_inv", quantization, kSide},
    {"scales", quantization, kSide},
    {"biases", quantization, kSide},
    {"zeros", quantization, kSide},
    {"qzeros", quantization, kSide},
    {"qscales", quantization, kSide},
    {"g_idx", quantization, kSide},
    {"absmax", quantization, kSide},
    {"quant_map", quantization, kSide},
    {"nested_absmax", quantization, kSide},
    {"nested_quant_map", quantization, kSide},
    {"quant_state", quantization, kSide},
    {"SCB", quantization, kSide},
    {"weight_format", quantization, kSide},
    {"gate_up_proj_scales", quantization, kSide},
    {"down_proj_scales", quantization, kSide},
    {"codebooks", quantization, kSide},
};

// ---------------------------------------------------------------- looking words up

constexpr std::size_t kSlots = 1024;
static_assert(std::size(kWords) * 2 < kSlots);

// Of the length, the first and the last four characters: words differ there, and names are read by the million.
constexpr std::size_t slot_of(std::string_view text) {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  const std::size_t count = text.size() < 4 ? text.size() : 4;
  for (std::size_t i = 0; i < count; ++i) {
    first = first << 8 | static_cast<unsigned char>(text[i]);
    last = last << 8 | static_cast<unsigned char>(text[text.size() - 1 - i]);
  }
  const std::uint64_t mixed =
      (std::uint64_t{first} << 32 | last) * 0x9e3779b97f4a7c15 + text.size() * std::uint64_t{0xc2b2ae3d27d4eb4f};
  return static_cast<std::size_t>(mixed >> 54);
}
static_assert(kSlots == 1u << (64 - 54));

constexpr std::array<std::uint16_t, kSlots> word_slots() {
  std::array<std::uint16_t, kSlots> slots{};
  for (std::size_t i = 0; i < std::size(kWords); ++i) {
    std::size_t at = slot_of(kWords[i].text);
    while (slots[at] != 0) at = (at + 1) % kSlots;
    slots[at] = static_cast<std::uint16_t>(i + 1);
  }
  return slots;
}
constexpr auto kWordSlots = word_slots();

const Word* find_word(std::string_view text) {
  for (std::size_t at = slot_of(text); kWordSlots[at] != 0; at = (at + 1) % kSlots)
    if (const Word& word = kWords[kWordSlots[at] - 1]; word.text == text) return &word;
  return nullptr;
}

// ---------------------------------------------------------------- reading a name

bool holds_layers(std::string_view component) {
  constexpr std::string_view kContainers[] = {"layers", "layer", "h", "blocks", "block", "blk", "decoder_layers"};
  for (const std::string_view container : kContainers)
    if (component == container) return true;
  return false;
}

std::optional<std::int32_t> small_number(std::string_view text) {
  if (text.empty() || text.size() > 6) return std::nullopt;
  std::int32_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

class Reader {
 public:
  TensorPlace read(std::string_view name) {
    parts_ = 1 + std::count(name.begin(), name.end(), '.');
    for (std::size_t begin = 0; begin <= name.size();) {
      const std::size_t end = std::min(name.find('.', begin), name.size());
      component(name.substr(begin, end - begin), begin == 0, end == name.size());
      begin = end + 1;
    }
    return {role_, outside_ ? -1 : layer_};
  }

 private:
  void component(std::string_view text, bool first, bool last) {
    if (const auto number = small_number(text)) {
      if (layer_ < 0 && holds_layers(before_)) layer_ = *number;
      if (before_.starts_with("ffn_")) take(expert, kMixture);  // GGUF of 2023: "blk.0.ffn_up.3.weight"
    } else if (text != "weight" && text != "bias" && text != "model") {
      word(text, first, last);
    }
    before_ = text;
  }

  void word(std::string_view text, bool first, bool last) {
    if (const Word* known = find_word(text)) {
      if (known->rank == kTower || known->rank == kExtra) outside_ = true;
      if (counts(*known, first, last)) take(known->role, known->rank);
    } else if (text == "gate") {
      if (role_ == feed_forward || before_ == "mixer") take(router, kMixture);
    } else if (text == "output") {
      if (first) take(output_head, kEdge);
    } else if (text == "predictions") {
      take(output_head, kEdge);
    } else if (text == "scale") {
      if (rank_ < kNorm && rank_ > kBlock) take(quantization, kSide);
    } else if (text.ends_with("norm") || text.ends_with("layernorm")) {
      take(norm, kNorm);
    } else if (text.starts_with("time_mix_") || text.ends_with("conv1d")) {
      take(recurrent, kMatrix);
    }
  }

  // Words that mean something only in their place.
  bool counts(const Word& word, bool first, bool last) const {
    if (word.text.size() <= 2 && word.rank == kTower)
      return first && parts_ > 2;  // GGUF projectors: "v.blk.0...", "mm.0.weight"; not a tensor named "a"
    if (word.text == "encoder") return before_ != "transformer";  // ChatGLM calls its decoder that
    if (word.text == "mlp1" || word.text == "shared" || word.text == "connector") return layer_ < 0;
    if (word.text == "biases" || word.text == "scales" || word.text == "zeros") return last;
    if (word.text == "embeddings" || word.text == "embedding" || word.text == "emb") return layer_ < 0;
    return true;
  }

  void take(TensorRole role, Rank rank) {
    // A norm beside the embeddings ("bert.embeddings.LayerNorm") is a norm still.
    if (rank < rank_ && !(rank == kNorm && rank_ == kEdge)) return;
    // Shared experts may be written "experts" inside ("shared_experts.experts"), and "shared_mlp.input_linear".
    if (role == expert && role_ == shared_expert) return;
    role_ = role;
    rank_ = rank;
  }

  TensorRole role_ = TensorRole::other;
  Rank rank_ = kNothing;
  std::int32_t layer_ = -1;
  bool outside_ = false;  // of the decoder's blocks
  std::string_view before_;
  std::ptrdiff_t parts_ = 0;  // components of the name
};

}  // namespace

TensorPlace place_of(std::string_view tensor_name) {
  return Reader().read(tensor_name);
}

}  // namespace gpuwright::model
