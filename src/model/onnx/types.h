// Element types of ONNX tensors. Source: enum TensorProto.DataType of onnx/onnx.in.proto (onnx/onnx), numbers 1 to 26.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/dtype.h"

namespace gpuwright::model::onnx {

struct ElementType {
  Dtype dtype = Dtype::unknown;
  std::string name;       // "F32", "STRING", "type 99"
  std::int64_t bits = 0;  // 0: not of fixed size, or not known
};

ElementType element_type(std::int64_t number);

// Bytes of so many elements packed without gaps, as raw_data holds them; nothing on overflow or without a fixed size.
std::optional<std::int64_t> packed_bytes(const ElementType& type, std::int64_t elements);

}  // namespace gpuwright::model::onnx
