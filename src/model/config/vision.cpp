// The vision towers and projectors of vision-language models. Sources: modeling_siglip.py, modeling_gemma3.py of
// transformers v5.
#include "model/config/towers.h"

namespace gpuwright::model {
namespace {

struct Patches {
  std::int64_t inputs = 0;  // numbers of one patch
  std::int64_t count = 0;   // patches of one image
};

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
  tower.heads = tower.kv_heads = vision.required({"num_attention_heads"}, kMaxHeads);
  tower.head_dim = vision.quotient(tower.hidden, tower.heads, "hidden_size / num_attention_heads");
  tower.width = vision.required({"intermediate_size"});
  return tower;
}

// SigLIP: no class token, a norm after the blocks.
Tower siglip_tower(const Fields& given, std::int64_t& positions) {
  const Fields vision = given.with_defaults(R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
                                                "num_attention_heads": 12})");
  Tower tower = tower_of(vision, "vision_tower.vision_model");
  const Patches patches = patches_of(vision, 224, 16);
  tower.patch_inputs = patches.inputs;
  tower.position_rows = positions = patches.count;
  tower.outer_norms = 1;
  return tower;
}

}  // namespace

void read_gemma3_vision(const Fields& config, Plan& plan, Model& model) {
  if (!config.has({"vision_config"})) return;
  std::int64_t positions = 0;
  const Tower tower = siglip_tower(config.child({"vision_config"}), positions);
  lay_out_tower(tower, plan);
  plan.matrix(TensorRole::vision, -1, "multi_modal_projector.mm_input_projection_weight", tower.hidden, model.hidden);
  plan.norm(-1, "multi_modal_projector.mm_soft_emb_norm", tower.hidden, false, TensorRole::vision);
  model.vision = encoder_of(tower, positions);
}

}  // namespace gpuwright::model
