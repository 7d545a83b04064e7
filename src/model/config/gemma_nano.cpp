// Gemma 3n and 4: per-layer embeddings, layers that share the cache of earlier ones, and in 3n alternating updates
// (AltUp) and low-rank residuals (LAuReL). Sources: modeling_gemma3n.py, modeling_gemma4.py,
// modeling_gemma4_unified.py of transformers v5.
#include <fmt/format.h>

#include "model/config/experts.h"
#include "model/config/towers.h"

namespace gpuwright::model {
namespace {

void use_four_norms(Decoder& decoder) {
  for (Block& block : decoder.blocks)
    block.norms = {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                   "post_feedforward_layernorm"};
}

// The last `count` layers read the cache of the last layer of their own kind before them.
void share_caches(const Fields& config, Decoder& decoder, std::int64_t count) {
  const auto layers = static_cast<std::int64_t>(decoder.blocks.size());
  if (count >= layers) {
    if (count > 0) config.reading().wrong(fmt::format("num_kv_shared_layers is {} of {} layers", count, layers));
    return;
  }
  const std::int64_t first = layers - count;
  std::optional<std::int32_t> source[2];
  for (std::int64_t i = 0; i < layers; ++i) {
    Attention& attention = decoder.blocks[static_cast<std::size_t>(i)].layer.attention;
    auto& last = source[attention.kind == AttentionKind::sliding ? 1 : 0];
    if (i < first) {
      last = static_cast<std::int32_t>(i);
    } else if (last) {
      attention.shares_cache_of = last;
    }
  }
}

void add_per_layer_inputs(const Fields& config, Decoder& decoder) {
  const std::int64_t width = config.size_or_zero({"hidden_size_per_layer_input"}, 256);
  if (width == 0) return;
  const std::int64_t rows = config.size({"vocab_size_per_layer_input"}, 262144, kMaxVocabulary);
  const std::int64_t hidden = decoder.hidden;
  const auto all = static_cast<std::int64_t>(decoder.blocks.size()) * width;
  for (Block& block : decoder.blocks) {
    block.extras.push_back({.name = "per_layer_input_gate",
                            .role = TensorRole::feed_forward,
                            .rows = width,
                            .columns = hidden,
                            .is_linear = true});
    block.extras.push_back({.name = "per_layer_projection",
                            .role = TensorRole::feed_forward,
                            .rows = hidden,
                            .columns = width,
                            .is_linear = true});
    block.extras.push_back({.name = "post_per_layer_input_norm.weight", .role = TensorRole::norm, .columns = hidden});
  }
  decoder.globals.push_back({.name = "model.embed_tokens_per_layer.weight",
                             .role = TensorRole::token_embedding,
                             .rows = rows,
                             .columns = all});
  decoder.globals.push_back({.name = "model.per_layer_model_projection",
                             .role = TensorRole::other,
                             .rows = all,
                             .columns = hidden,
                             .is_linear = true});
  decoder.globals.push_back(
      {.name = "model.per_layer_projection_norm.weight", .role = TensorRole::norm, .columns = width});
}

void add_altup(const Fields& config, Decoder& decoder) {
  const std::int64_t inputs = config.size({"altup_num_inputs"}, 4, 64);
  const std::int64_t rank = config.size({"laurel_rank"}, 64);
  const std::int64_t hidden = decoder.hidden;
  const auto tensor = [](std::string_view name, std::int64_t rows, std::int64_t columns) {
    return Extra{.name = name, .role = TensorRole::other, .rows = rows, .columns = columns};
  };
  for (Block& block : decoder.blocks) {
    block.extras.push_back(tensor("altup.correct_output_scale", 1, hidden));
    block.extras.push_back(tensor("altup.correction_coefs.weight", inputs, inputs));
    block.extras.push_back(tensor("altup.prediction_coefs.weight", inputs * inputs, inputs));
    block.extras.push_back(tensor("altup.modality_router.weight", inputs, hidden));
    block.extras.push_back(tensor("altup.router_norm.weight", 1, hidden));
    block.extras.push_back(tensor("laurel.linear_left.weight", rank, hidden));
    block.extras.push_back(tensor("laurel.linear_right.weight", hidden, rank));
    block.extras.push_back(tensor("laurel.post_laurel_norm.weight", 1, hidden));
  }
  decoder.globals.push_back(tensor("model.altup_projections", (inputs - 1) * hidden, hidden));
  decoder.globals.push_back(tensor("model.altup_unembed_projections", (inputs - 1) * hidden, hidden));
}

void add_gemma4_experts(const Fields& config, Decoder& decoder) {
  if (!config.flag({"enable_moe_block"}, false)) return;
  const Experts experts{.count = config.required({"num_experts"}, kMaxExperts),
                        .active = config.required({"top_k_experts"}, kMaxExperts),
                        .width = config.required({"moe_intermediate_size"})};
  decoder.names.router = "router.proj";
  decoder.names.experts = "experts";
  for (Block& block : decoder.blocks) {
    const std::int64_t dense = block.layer.feed_forward.width;
    set_experts(block, experts);
    block.layer.feed_forward.width = dense;  // both run, side by side
    block.dense = true;
    block.norms.insert(block.norms.end(),
                       {"post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"});
    block.extras.push_back({.name = "router.scale", .role = TensorRole::router, .columns = decoder.hidden});
    block.extras.push_back({.name = "router.per_expert_scale", .role = TensorRole::router, .columns = experts.count});
  }
}

}  // namespace

Decoder read_gemma3n(const Fields& given) {
  const Fields config = given.with_defaults(R"({
      "vocab_size": 262400, "hidden_size": 2048, "num_hidden_layers": 35, "num_attention_heads": 8,
      "num_key_value_heads": 2, "head_dim": 256, "max_position_embeddings": 32768, "sliding_window": 512})");
  // One width for all layers, or a list.
  const std::vector<std::int64_t> widths = config.sizes({"intermediate_size"});
  Decoder decoder = llama_like(config.without({"intermediate_size"}), true);
  use_four_norms(decoder);
  for (std::size_t i = 0; i < decoder.blocks.size(); ++i) {
    Block& block = decoder.blocks[i];
    block.q_norm = block.k_norm = block.layer.attention.key_dim;
    block.layer.feed_forward.width = widths.empty() ? 16384 : widths[std::min(i, widths.size() - 1)];
  }
  const std::int64_t window = config.required({"sliding_window"}, kMaxPositions);
  if (!apply_layer_types(config, decoder, window)) apply_window(decoder, window, 5);
  share_caches(config, decoder, config.size_or_zero({"num_kv_shared_layers"}, 15, kMaxLayers));
  for (Block& block : decoder.blocks) {
    if (!block.layer.attention.shares_cache_of) continue;
    block.stores_keys = false;
    block.k_norm = 0;
  }
  add_per_layer_inputs(config, decoder);
  add_altup(config, decoder);
  return decoder;
}

Decoder read_gemma4(const Fields& given) {
  const Fields config = given.with_defaults(R"({
      "vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 30,
      "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072,
      "sliding_window": 512, "global_head_dim": 512})");
  Decoder decoder = llama_like(config, true);
  use_four_norms(decoder);
  const std::int64_t window = config.required({"sliding_window"}, kMaxPositions);
  if (!apply_layer_types(config, decoder, window)) apply_window(decoder, window, 6);
  decoder.blocks.back().layer.attention.kind = AttentionKind::full;
  const bool key_is_value = config.flag({"attention_k_eq_v"}, false);
  const bool bias = config.flag({"attention_bias"}, false);
  const bool doubled = config.flag({"use_double_wide_mlp"}, false);
  const std::int64_t global_dim = config.required({"global_head_dim"}, kMaxHeads);
  for (Block& block : decoder.blocks) {
    Attention& attention = block.layer.attention;
    block.qkv_bias = block.o_bias = bias;
    block.extras.push_back({.name = "layer_scalar", .role = TensorRole::other, .columns = 1});
    if (attention.kind != AttentionKind::full) continue;
    attention.window = 0;
    attention.key_dim = attention.value_dim = global_dim;
    block.value_is_key = key_is_value;
    if (key_is_value) attention.kv_heads = config.size({"num_global_key_value_heads"}, attention.kv_heads, kMaxHeads);
  }
  share_caches(config, decoder, config.size_or_zero({"num_kv_shared_layers"}, 0, kMaxLayers));
  for (Block& block : decoder.blocks) {
    const bool shared = block.layer.attention.shares_cache_of.has_value();
    block.stores_keys = !shared;
    block.q_norm = block.layer.attention.key_dim;
    block.k_norm = shared ? 0 : block.q_norm;
    if (shared && doubled) block.layer.feed_forward.width *= 2;
  }
  add_gemma4_experts(config, decoder);
  add_per_layer_inputs(config, decoder);
  return decoder;
}

// One projection of patches instead of a tower.
Decoder read_gemma4_unified(const Fields& config) {
  return read_gemma4(config.with_defaults(R"({"hidden_size_per_layer_input": 0, "sliding_window": 1024})"));
}

namespace {

constexpr TensorRole kVision = TensorRole::vision;

void lay_out_gemma4_vision(const Fields& vision, Plan& plan, Model& model) {
  Tower tower = tower_of(vision, "vision_tower.encoder");
  tower.head_dim = vision.size({"head_dim"}, 64, kMaxHeads);
  tower.kv_heads = vision.size({"num_key_value_heads"}, tower.heads, kMaxHeads);
  tower.gated = true;
  tower.qkv_bias = tower.out_bias = tower.mlp_bias = tower.norm_bias = false;
  tower.norms_per_block = 4;
  tower.head_norms = 2 * tower.head_dim;
  const std::int64_t patch = vision.size({"patch_size"}, 16, 1 << 12);
  tower.patch_inputs = 3 * patch * patch;
  tower.patch_bias = false;
  tower.position_rows = 2 * vision.size({"position_embedding_size"}, 10240, 1 << 20);
  lay_out_tower(tower, plan);
  if (vision.flag({"standardize"}, false)) plan.matrix(kVision, -1, "vision_tower.std", 2, tower.hidden);
  plan.linear(kVision, -1, "embed_vision.embedding_projection", model.hidden, tower.hidden);
  model.vision = encoder_of(tower, 0);
}

// A conformer: two half feed-forwards around attention with relative positions and a light convolution.
void lay_out_gemma4_audio_block(const Fields& audio, std::int64_t hidden, const std::string& block, Plan& plan) {
  const std::int64_t heads = audio.size({"num_attention_heads"}, 8, kMaxHeads);
  for (const std::string_view part : {"feed_forward1", "feed_forward2"}) {
    plan.linear(kVision, -1, fmt::format("{}.{}.ffw_layer_1", block, part), 4 * hidden, hidden);
    plan.linear(kVision, -1, fmt::format("{}.{}.ffw_layer_2", block, part), hidden, 4 * hidden);
    plan.matrix(kVision, -1, fmt::format("{}.{}.norms", block, part), 2, hidden);
  }
  for (const std::string_view part : {"q_proj", "k_proj", "v_proj", "post", "relative_k_proj"})
    plan.linear(kVision, -1, fmt::format("{}.self_attn.{}", block, part), hidden, hidden);
  plan.vector(kVision, -1, block + ".self_attn.per_dim_scale", audio.quotient(hidden, heads, "hidden_size / heads"));
  plan.linear(kVision, -1, block + ".lconv1d.linear_start", 2 * hidden, hidden);
  plan.linear(kVision, -1, block + ".lconv1d.linear_end", hidden, hidden);
  plan.matrix(kVision, -1, block + ".lconv1d.depthwise_conv1d.weight", hidden,
              audio.size({"conv_kernel_size"}, 5, 256));
  plan.matrix(kVision, -1, block + ".norms", 5, hidden);
}

void lay_out_gemma4_audio(const Fields& audio, Plan& plan, const Model& model) {
  const std::int64_t hidden = audio.size({"hidden_size"}, 1024);
  const std::int64_t layers = audio.size({"num_hidden_layers"}, 12, kMaxLayers);
  std::vector<std::int64_t> channels = audio.sizes({"subsampling_conv_channels"}, 1 << 16);
  if (channels.size() != 2) channels = {128, 32};
  plan.matrix(kVision, -1, "audio_tower.subsample.layer0", channels[0], 9 + 1);
  plan.matrix(kVision, -1, "audio_tower.subsample.layer1", channels[1], 9 * channels[0] + 1);
  plan.linear(kVision, -1, "audio_tower.subsample.input_proj_linear", hidden, channels[0] / 4 * channels[1]);
  for (std::int64_t i = 0; i < layers; ++i)
    lay_out_gemma4_audio_block(audio, hidden, fmt::format("audio_tower.layers.{}", i), plan);
  const std::int64_t output = audio.size({"output_proj_dims"}, 1536);
  plan.linear(kVision, -1, "audio_tower.output_proj", output, hidden, {.bias = true});
  plan.linear(kVision, -1, "embed_audio.embedding_projection", model.hidden, output);
}

}  // namespace

void read_gemma4_towers(const Fields& config, Plan& plan, Model& model) {
  if (config.has({"vision_config"}))
    lay_out_gemma4_vision(config.child({"vision_config"}).with_defaults(R"({"hidden_size": 768,
        "intermediate_size": 3072, "num_hidden_layers": 16, "num_attention_heads": 12})"),
                          plan, model);
  if (config.has({"audio_config"})) lay_out_gemma4_audio(config.child({"audio_config"}), plan, model);
}

}  // namespace gpuwright::model
