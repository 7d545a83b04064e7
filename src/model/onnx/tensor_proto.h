// TensorProto and SparseTensorProto: a tensor's name, type, shape and where its data are.
#pragma once

#include <vector>

#include "model/byte_cursor.h"
#include "model/onnx/proto.h"
#include "model/onnx/wire.h"

namespace gpuwright::model::onnx {

// Both note failures in the cursor.
Initializer read_tensor(ByteCursor& cursor, Message message);
// The values, then the positions.
std::vector<Initializer> read_sparse_tensor(ByteCursor& cursor, Message message);

constexpr std::uint64_t kMaxNameBytes = 1 << 12;

}  // namespace gpuwright::model::onnx
