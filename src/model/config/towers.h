// Vision (and audio) towers that stand before a decoder or alone: stacks of transformer blocks over patches.
#pragma once

#include <string>
#include <string_view>

#include "model/config/fields.h"
#include "model/config/plan.h"
#include "model/model.h"

namespace gpuwright::model {

// A plain pre-norm transformer encoder. Module names are neutral: towers differ in spelling, not in what they weigh.
struct Tower {
  std::string prefix;
  TensorRole role = TensorRole::vision;
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t width = 0;
  bool gated = false;
  bool qkv_bias = true, key_bias = true, out_bias = true, mlp_bias = true;
  bool fused_qkv = false;
  bool norm_weight = true, norm_bias = true;
  std::int64_t norms_per_block = 2;
  std::int64_t norms_of_first_block = 2;
  std::int64_t head_norms = 0;       // elements of norms on queries and keys, together
  std::int64_t extra_per_block = 0;  // layer scales and the like
  bool numbered = false;             // blocks are the layers of the model
  // Patch embedding: hidden x patch_inputs
  std::int64_t patch_inputs = 0;
  bool patch_bias = true;
  std::int64_t position_rows = 0;
  std::int64_t class_tokens = 0;
  std::int64_t outer_norms = 0;  // before and after the blocks
};

void lay_out_tower(const Tower& tower, Plan& plan);
// The blocks as layers of the model that keep no cache.
void add_layers(const Tower& tower, Model& model);
// CLIP's and SigLIP's vision tower, as they stand in front of decoders; sets the number of patches.
Tower clip_vision_tower(const Fields& vision, std::string prefix, std::int64_t& positions);
Tower siglip_vision_tower(const Fields& vision, std::string prefix, std::int64_t& positions);
Encoder encoder_of(const Tower& tower, std::int64_t positions);

struct Patches {
  std::int64_t inputs = 0;  // numbers of one patch
  std::int64_t count = 0;   // patches of one image
};
Patches patches_of(const Fields& vision, std::int64_t image_fallback, std::int64_t patch_fallback);
// Sizes under the usual keys.
Tower tower_of(const Fields& vision, std::string prefix);

// The towers of vision-language models.
void read_gemma3_vision(const Fields& config, Plan& plan, Model& model);
void read_gemma3n_towers(const Fields& config, Plan& plan, Model& model);
void read_gemma4_towers(const Fields& config, Plan& plan, Model& model);
void read_qwen2_vision(const Fields& config, Plan& plan, Model& model);
void read_qwen2_5_vision(const Fields& config, Plan& plan, Model& model);
void read_qwen3_vision(const Fields& config, Plan& plan, Model& model);
void read_llama4_vision(const Fields& config, Plan& plan, Model& model);
void read_mllama_vision(const Fields& config, Plan& plan, Model& model);
void read_mistral3_vision(const Fields& config, Plan& plan, Model& model);
void read_llava_vision(const Fields& config, Plan& plan, Model& model);

// Encoder-only and two-tower models.
void read_bert(const Fields& config, Plan& plan, Model& model);
void read_roberta(const Fields& config, Plan& plan, Model& model);
void read_distilbert(const Fields& config, Plan& plan, Model& model);
void read_modernbert(const Fields& config, Plan& plan, Model& model);
void read_nomic_bert(const Fields& config, Plan& plan, Model& model);
void read_vit(const Fields& config, Plan& plan, Model& model);
void read_dinov2(const Fields& config, Plan& plan, Model& model);
void read_clip(const Fields& config, Plan& plan, Model& model);
void read_siglip(const Fields& config, Plan& plan, Model& model);

// Encoder-decoders.
void read_t5(const Fields& config, Plan& plan, Model& model);
void read_bart(const Fields& config, Plan& plan, Model& model);
void read_whisper(const Fields& config, Plan& plan, Model& model);

}  // namespace gpuwright::model
