// Recurrent parts of blocks: their tensors and their shapes.
#pragma once

#include <string>

#include "model/config/decoder.h"

namespace gpuwright::model {

void lay_out_mixer(std::int64_t hidden, const Block& block, const std::string& module, std::int32_t layer, Plan& plan);

// The gated delta net of Qwen3-Next and Qwen3.5 from its linear_* keys.
Recurrent gated_delta_net_of(const Fields& config);

}  // namespace gpuwright::model
