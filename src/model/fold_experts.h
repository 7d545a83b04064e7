// A mixture of experts has tens of thousands of tensors that differ only in the number of their expert. Everything
// that is computed from a Model walks its tensors many times, so equal ones are folded into one with `copies`.
#pragma once

#include <vector>

#include "model/model.h"

namespace gpuwright::model {

// "layers.3.mlp.experts.0.up_proj.weight" ... "experts.255.": one tensor "layers.3.mlp.experts.*.up_proj.weight" with
// 256 copies. Tensors must agree in layer, role, storage and shape; the others keep their order.
void fold_experts(std::vector<Tensor>& tensors);

}  // namespace gpuwright::model
