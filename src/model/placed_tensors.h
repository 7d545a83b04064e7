// Inside of the folder loader: stored tensors with their roles, equal experts put together.
#pragma once

#include <vector>

#include "model/model.h"
#include "model/weights_file.h"

namespace gpuwright::model {

// The experts of a layer that are equal in shape and dtype become one Tensor with copies, named with a "*" for their
// number: a model of 92,000 tensors becomes one of 2,000, and what follows costs as much. Bytes add up exactly.
std::vector<Tensor> placed_tensors(const std::vector<StoredTensor>& stored);

}  // namespace gpuwright::model
