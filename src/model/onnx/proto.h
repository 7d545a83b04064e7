// An ONNX file taken apart: what its messages say, before external files are looked at. Weights are jumped over by
// their length and never read. Field numbers: onnx/onnx.in.proto (onnx/onnx), IR versions 1 to 13.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "model/model.h"
#include "model/onnx/types.h"

namespace gpuwright::model::onnx {

struct Initializer {
  std::string name;
  ElementType type;
  std::int64_t rows = 1;     // product of all dimensions but the last
  std::int64_t columns = 1;  // of a scalar 1; 0 where a dimension is 0
  bool has_data = false;
  std::int64_t stored_bytes = 0;  // as the data take it in memory; of strings their letters
  bool external = false;
  std::string location;      // relative to the folder of the model
  std::int64_t offset = 0;   // in the external file
  std::int64_t length = -1;  // -1: to be told from the shape
  bool is_index = false;     // positions of a sparse tensor's values
};

struct Proto {
  GraphInfo info;
  std::vector<Initializer> initializers;  // of all graphs, constants in nodes and sparse ones included
};

// bad_input: not Protocol Buffers, cut off, absurd, or nested deeper than any real model.
Result<Proto> read_proto(const ByteSource& file);

}  // namespace gpuwright::model::onnx
