// The vision towers and projectors of vision-language models. Sources: modeling_siglip.py, modeling_clip.py,
// modeling_gemma3.py, modeling_qwen2_vl.py, modeling_qwen2_5_vl.py, modeling_qwen3_vl.py, modeling_llama4.py,
// modeling_mllama.py, modeling_pixtral.py, modeling_mistral3.py, modeling_llava.py of transformers v5.
#include <algorithm>

#include "model/config/towers.h"

namespace gpuwright::model {
namespace {

constexpr TensorRole kVision = TensorRole::vision;

void projector(Plan& plan, std::string_view name, std::int64_t outputs, std::int64_t inputs, bool bias) {
  plan.linear(kVision, -1, std::string(name), outputs, inputs, {.bias = bias});
}

bool has_vision(const Fields& config) {
  return config.child({"vision_config"}).json().is_object() && config.has({"vision_config"});
}

// Qwen's towers merge spatial_merge_size^2 patches, each seen over temporal_patch_size frames.
struct QwenVision {
  Tower tower;
  std::int64_t merged = 0;  // numbers of one merged patch
};

QwenVision qwen_tower(const Fields& vision, Keys hidden) {
  QwenVision result;
  Tower& t = result.tower;
  t.prefix = "visual";
  t.fused_qkv = true;
  t.hidden = vision.required(hidden);
  t.layers = vision.required({"depth", "num_hidden_layers"}, kMaxLayers);
  t.heads = t.kv_heads = vision.required({"num_heads", "num_attention_heads"}, kMaxHeads);
  t.head_dim = vision.quotient(t.hidden, t.heads, "hidden_size / num_heads");
  const std::int64_t patch = vision.size({"patch_size", "spatial_patch_size"}, 14, 1 << 12);
  const std::int64_t frames = vision.size({"temporal_patch_size"}, 2, 64);
  t.patch_inputs = vision.size({"in_channels", "in_chans"}, 3, 64) * frames * patch * patch;
  const std::int64_t merge = vision.size({"spatial_merge_size"}, 2, 64);
  result.merged = t.hidden * merge * merge;
  return result;
}

void lay_out_merger(Plan& plan, const std::string& name, const QwenVision& vision, std::int64_t norm, bool norm_bias,
                    std::int64_t outputs) {
  plan.norm(-1, name + ".norm", norm, norm_bias, kVision);
  projector(plan, name + ".linear_fc1", vision.merged, vision.merged, true);
  projector(plan, name + ".linear_fc2", outputs, vision.merged, true);
}

}  // namespace

Patches patches_of(const Fields& vision, std::int64_t image_fallback, std::int64_t patch_fallback) {
  const std::int64_t image = vision.size({"image_size"}, image_fallback, 1 << 16);
  const std::int64_t patch = vision.size({"patch_size"}, patch_fallback, 1 << 12);
  const std::int64_t channels = vision.size({"num_channels"}, 3, 64);
  const std::int64_t side = image / patch;
  return {channels * patch * patch, side * side};
}

Tower tower_of(const Fields& vision, std::string prefix) {
  Tower tower;
  tower.prefix = std::move(prefix);
  tower.hidden = vision.required({"hidden_size"});
  tower.layers = vision.required({"num_hidden_layers"}, kMaxLayers);
  tower.heads = tower.kv_heads = vision.required({"num_attention_heads", "attention_heads"}, kMaxHeads);
  tower.head_dim = vision.quotient(tower.hidden, tower.heads, "hidden_size / num_attention_heads");
  tower.width = vision.required({"intermediate_size"});
  return tower;
}

// No class token, a norm after the blocks.
Tower siglip_vision_tower(const Fields& given, std::string prefix, std::int64_t& positions) {
  const Fields vision = given.with_defaults(R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
                                                "num_attention_heads": 12})");
  Tower tower = tower_of(vision, std::move(prefix));
  const Patches patches = patches_of(vision, 224, 16);
  tower.patch_inputs = patches.inputs;
  tower.position_rows = positions = patches.count;
  tower.outer_norms = 1;
  return tower;
}

Tower clip_vision_tower(const Fields& given, std::string prefix, std::int64_t& positions) {
  const Fields vision = given.with_defaults(R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
                                                "num_attention_heads": 12})");
  Tower tower = tower_of(vision, std::move(prefix));
  const Patches patches = patches_of(vision, 224, 32);
  tower.patch_inputs = patches.inputs;
  tower.patch_bias = false;
  tower.class_tokens = 1;
  tower.position_rows = positions = patches.count + 1;
  tower.outer_norms = 2;
  return tower;
}

void read_gemma3_vision(const Fields& config, Plan& plan, Model& model) {
  if (!has_vision(config)) return;
  std::int64_t positions = 0;
  const Tower tower = siglip_vision_tower(config.child({"vision_config"}), "vision_tower.vision_model", positions);
  lay_out_tower(tower, plan);
  plan.matrix(kVision, -1, "multi_modal_projector.mm_input_projection_weight", tower.hidden, model.hidden);
  plan.norm(-1, "multi_modal_projector.mm_soft_emb_norm", tower.hidden, false, kVision);
  model.vision = encoder_of(tower, positions);
}

void read_gemma3n_towers(const Fields& config, Plan&, Model&) {
  if (config.has({"vision_config"}) || config.has({"audio_config"}))
    config.reading().assumptions.push_back(
        "The vision (MobileNet-V5) and audio towers of Gemma 3n are not described: their weights are missing here.");
}

void read_qwen2_vision(const Fields& config, Plan& plan, Model& model) {
  if (!has_vision(config)) return;
  const Fields vision = config.child({"vision_config"});
  QwenVision q = qwen_tower(vision, {"embed_dim"});
  q.tower.patch_bias = false;
  q.tower.width = vision.size({"mlp_ratio"}, 4, 64) * q.tower.hidden;
  lay_out_tower(q.tower, plan);
  lay_out_merger(plan, "visual.merger", q, q.tower.hidden, true, vision.size({"hidden_size"}, model.hidden));
  model.vision = encoder_of(q.tower, 0);
}

void read_qwen2_5_vision(const Fields& config, Plan& plan, Model& model) {
  if (!has_vision(config)) return;
  const Fields vision = config.child({"vision_config"});
  QwenVision q =
      qwen_tower(vision.with_defaults(R"({"depth": 32, "num_heads": 16, "hidden_size": 1280})"), {"hidden_size"});
  q.tower.patch_bias = false;
  q.tower.norm_bias = false;
  q.tower.gated = true;
  q.tower.width = vision.size({"intermediate_size"}, 3420);
  lay_out_tower(q.tower, plan);
  lay_out_merger(plan, "visual.merger", q, q.tower.hidden, false, vision.size({"out_hidden_size"}, model.hidden));
  model.vision = encoder_of(q.tower, 0);
}

// Qwen3-VL also feeds the decoder from inner blocks, each through a merger of its own; Qwen3.5 does not.
void read_qwen3_vision(const Fields& config, Plan& plan, Model& model) {
  if (!has_vision(config)) return;
  const Fields vision = config.child({"vision_config"})
                            .with_defaults(R"({"depth": 27, "num_heads": 16, "hidden_size": 1152, "patch_size": 16})");
  QwenVision q = qwen_tower(vision, {"hidden_size"});
  q.tower.width = vision.size({"intermediate_size"}, 4304);
  q.tower.position_rows = vision.size({"num_position_embeddings"}, 2304);
  const std::int64_t outputs = vision.size({"out_hidden_size"}, model.hidden);
  lay_out_tower(q.tower, plan);
  lay_out_merger(plan, "visual.merger", q, q.tower.hidden, true, outputs);
  const std::size_t deep = vision.sizes({"deepstack_visual_indexes"}, kMaxLayers).size();
  for (std::size_t i = 0; i < deep && i < 256; ++i)
    lay_out_merger(plan, "visual.deepstack_merger_list." + std::to_string(i), q, q.merged, true, outputs);
  model.vision = encoder_of(q.tower, q.tower.position_rows);
}

void read_llama4_vision(const Fields& config, Plan& plan, Model& model) {
  if (!has_vision(config)) return;
  const Fields vision = config.child({"vision_config"}).with_defaults(R"({"hidden_size": 768, "num_hidden_layers": 34,
      "num_attention_heads": 16, "intermediate_size": 5632})");
  Tower tower = tower_of(vision, "vision_model");
  const Patches patches = patches_of(vision, 448, 14);
  tower.patch_inputs = patches.inputs;
  tower.patch_bias = false;
  tower.class_tokens = 1;
  tower.position_rows = patches.count + 1;
  tower.outer_norms = 2;
  lay_out_tower(tower, plan);
  const std::int64_t input = vision.size({"projector_input_dim"}, 4096);
  const std::int64_t output = vision.size({"projector_output_dim"}, 4096);
  projector(plan, "vision_model.vision_adapter.mlp.fc1", input, tower.width, false);
  projector(plan, "vision_model.vision_adapter.mlp.fc2", output, output, false);
  projector(plan, "multi_modal_projector.linear_1", model.hidden, vision.size({"vision_output_dim"}, 7680), false);
  model.vision = encoder_of(tower, tower.position_rows);
}

// A tower over up to four tiles: local blocks, then gated global ones (Llama 3.2 Vision).
void read_mllama_vision(const Fields& config, Plan& plan, Model& model) {
  if (!has_vision(config)) return;
  const Fields vision = config.child({"vision_config"}).with_defaults(R"({"hidden_size": 1280, "num_hidden_layers": 32,
      "attention_heads": 16, "intermediate_size": 5120})");
  Tower tower = tower_of(vision, "vision_model.transformer");
  tower.qkv_bias = tower.out_bias = false;
  const Patches patches = patches_of(vision, 448, 14);
  tower.patch_inputs = patches.inputs;
  tower.patch_bias = false;
  tower.class_tokens = 1;
  tower.position_rows = patches.count + 1;
  tower.outer_norms = 2;
  lay_out_tower(tower, plan);
  Tower global = tower;
  global.prefix = "vision_model.global_transformer";
  global.layers = vision.size({"num_global_layers"}, 8, kMaxLayers);
  global.patch_inputs = global.class_tokens = global.position_rows = global.outer_norms = 0;
  global.extra_per_block = 2;
  lay_out_tower(global, plan);
  const std::int64_t tiles = vision.size({"max_num_tiles"}, 4, 64);
  std::int64_t ratios = static_cast<std::int64_t>(
      vision.find({"supported_aspect_ratios"}) ? vision.find({"supported_aspect_ratios"})->items().size() : 8);
  ratios = std::min<std::int64_t>(ratios, 4096) + 1;
  plan.matrix(kVision, -1, "vision_model.pre_tile_positional_embedding", ratios, tiles * tower.hidden);
  plan.matrix(kVision, -1, "vision_model.post_tile_positional_embedding", ratios, tiles * tower.hidden);
  plan.matrix(kVision, -1, "vision_model.gated_positional_embedding.tile_embedding",
              ratios * tiles * tower.position_rows, tower.hidden);
  plan.vector(kVision, -1, "vision_model.gates", 3);
  projector(plan, "multi_modal_projector", model.hidden, vision.size({"vision_output_dim"}, 7680), true);
  model.vision = encoder_of(tower, tower.position_rows);
}

namespace {

// Pixtral: RMSNorm, gated, rotary positions, no biases.
Tower pixtral_tower(const Fields& given, std::string prefix) {
  const Fields vision = given.with_defaults(R"({"hidden_size": 1024, "intermediate_size": 4096,
      "num_hidden_layers": 24, "num_attention_heads": 16})");
  Tower tower = tower_of(vision, std::move(prefix));
  tower.gated = true;
  tower.qkv_bias = tower.out_bias = tower.mlp_bias = tower.norm_bias = tower.patch_bias = false;
  tower.patch_inputs = patches_of(vision, 1024, 16).inputs;
  tower.outer_norms = 1;
  return tower;
}

Tower tower_by_type(const Fields& vision, std::int64_t& positions) {
  const std::string type = vision.text({"model_type"}, "clip_vision_model");
  if (type == "pixtral") return pixtral_tower(vision, "vision_tower");
  if (type == "siglip_vision_model") return siglip_vision_tower(vision, "vision_tower.vision_model", positions);
  if (type != "clip_vision_model")
    vision.reading().refuse("the vision tower \"" + type.substr(0, 80) + "\" is not known");
  return clip_vision_tower(vision, "vision_tower.vision_model", positions);
}

}  // namespace

void read_mistral3_vision(const Fields& config, Plan& plan, Model& model) {
  if (!has_vision(config)) return;
  std::int64_t positions = 0;
  const Fields vision = config.child({"vision_config"}).with_defaults(R"({"model_type": "pixtral"})");
  const Tower tower = tower_by_type(vision, positions);
  lay_out_tower(tower, plan);
  const std::int64_t merge = config.size({"spatial_merge_size"}, 2, 64);
  const bool bias = config.flag({"multimodal_projector_bias"}, false);
  plan.norm(-1, "multi_modal_projector.norm", tower.hidden, false, kVision);
  projector(plan, "multi_modal_projector.patch_merger.merging_layer", tower.hidden, tower.hidden * merge * merge,
            false);
  projector(plan, "multi_modal_projector.linear_1", model.hidden, tower.hidden, bias);
  projector(plan, "multi_modal_projector.linear_2", model.hidden, model.hidden, bias);
  model.vision = encoder_of(tower, positions);
}

void read_llava_vision(const Fields& config, Plan& plan, Model& model) {
  if (!has_vision(config)) return;
  std::int64_t positions = 0;
  const Tower tower = tower_by_type(config.child({"vision_config"}), positions);
  lay_out_tower(tower, plan);
  const Json* feature = config.find({"vision_feature_layer"});
  const auto features = feature && feature->is_array() ? static_cast<std::int64_t>(feature->items().size()) : 1;
  const bool bias = config.flag({"multimodal_projector_bias"}, true);
  projector(plan, "multi_modal_projector.linear_1", model.hidden,
            tower.hidden * std::clamp<std::int64_t>(features, 1, 64), bias);
  projector(plan, "multi_modal_projector.linear_2", model.hidden, model.hidden, bias);
  model.vision = encoder_of(tower, positions);
}

}  // namespace gpuwright::model
