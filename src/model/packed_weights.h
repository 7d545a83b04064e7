// Inside of the folder loader: how many weights the elements of a packed tensor stand for.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "model/model.h"

namespace gpuwright::model {

// Sets weights_per_element (and rows, where elements and weights do not divide) of packed tensors, so that
// parameters() counts logical weights: GPTQ and AWQ qweight, bitsandbytes 4 bit, compressed-tensors weight_packed,
// MXFP4 blocks, NVFP4, MLX. Sizes of the company (scales, zero points) decide where they can; else the config's
// quantization_config; else 4 bits. `config` may be null.
void count_packed_weights(std::vector<Tensor>& tensors, const Json* config);

}  // namespace gpuwright::model
