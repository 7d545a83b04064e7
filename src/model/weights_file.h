// What the header readers (safetensors, GGUF, ONNX, PyTorch .bin) have in common. They read headers only, bounded in
// memory and time whatever the bytes say; weights themselves are never read.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "model/load.h"
#include "model/model.h"

namespace gpuwright::model {

// One tensor as a header declares it, before anybody knows what it is for.
struct StoredTensor {
  std::string_view name;  // of the texts of its WeightsFile
  Dtype dtype = Dtype::unknown;
  const char* format = nullptr;  // safetensors: the format's word for the dtype; null for one that is not known
  std::int64_t rows = 0;         // product of all dimensions but the innermost one
  std::int64_t columns = 0;
  Bytes bytes;
};

struct WeightsFile {
  std::vector<StoredTensor> tensors;
  Bytes header_bytes;                          // header, padding and everything that is not tensor data
  Bytes file_bytes;                            // all shards together
  std::vector<std::string> files;              // that were read
  std::vector<std::string> notes;              // oddities that do not make the file useless, one sentence each
  std::vector<std::unique_ptr<char[]>> texts;  // that names are views of: 100,000 of them are not copied one by one
};

Result<WeightsFile> read_safetensors(const ByteSource& file);
// model.safetensors.index.json with its shards. Shard names must stay inside the folder.
Result<WeightsFile> read_safetensors_index(const ModelFiles& folder, const std::string& index_name);

// Role and layer of a tensor from its name: Hugging Face ("model.layers.3.self_attn.q_proj.weight"), GGUF
// ("blk.3.attn_q.weight") and the older module names ("transformer.h.3.attn.c_attn.weight").
struct TensorPlace {
  TensorRole role = TensorRole::other;
  std::int32_t layer = -1;
};
TensorPlace place_of(std::string_view tensor_name);

// A GGUF file carries its own description (metadata), so it gives a whole Model. `first` may be shard 00001-of-N;
// the others are opened through `folder`.
Result<Model> read_gguf(const ByteSource& first, const ModelFiles* folder, const LoadOptions& options);
Result<Model> read_onnx(const ByteSource& file, const ModelFiles* folder, const LoadOptions& options);

}  // namespace gpuwright::model
