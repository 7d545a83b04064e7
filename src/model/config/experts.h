// Turning dense blocks into mixtures of experts.
#pragma once

#include "model/config/families.h"

namespace gpuwright::model {

struct Experts {
  std::int64_t count = 0;
  std::int64_t active = 0;
  std::int64_t width = 0;
  std::int64_t shared_width = 0;
};
void set_experts(Block& block, const Experts& experts);

// The DeepSeek keys, which GLM and others took over: n_routed_experts on every layer from first_k_dense_replace on,
// n_shared_experts beside them; num_nextn_predict_layers whole layers for multi-token prediction at the end.
void add_deepseek_experts(const Fields& config, Decoder& decoder, bool correction_bias);
void add_deepseek_predictors(const Fields& config, Decoder& decoder);

}  // namespace gpuwright::model
