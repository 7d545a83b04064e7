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
  std::int64_t head_norms = 0;       // elements of norms on queries and keys, together
  std::int64_t extra_per_block = 0;  // layer scales and the like
  // Patch embedding: hidden x patch_inputs
  std::int64_t patch_inputs = 0;
  bool patch_bias = true;
  std::int64_t position_rows = 0;
  std::int64_t class_tokens = 0;
  std::int64_t outer_norms = 0;  // before and after the blocks
};

void lay_out_tower(const Tower& tower, Plan& plan);
Encoder encoder_of(const Tower& tower, std::int64_t positions);

// Readers for config.json of vision-language models.
void read_gemma3_vision(const Fields& config, Plan& plan, Model& model);

}  // namespace gpuwright::model
