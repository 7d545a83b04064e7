// A GGUF model in one file or in many: model-00001-of-00003.gguf and so on, as llama-gguf-split writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "model/gguf/header.h"
#include "model/load.h"
#include "model/weights_file.h"

namespace gpuwright::model::gguf {

struct Shards {
  Header header;        // of the first file, with the tensors of all
  WeightsFile weights;  // tensors in the same order, their names views of the header's
};

// `folder` may be null for a model in one file. not_found: absent shards, each named; bad_input: shards that do not
// belong together.
Result<Shards> read_shards(const ByteSource& first, const ModelFiles* folder, const LoadOptions& options);

// "model-00002-of-00003.gguf" -> number 2 of 3, stem "model".
struct ShardName {
  std::string stem;
  std::int64_t number = 0;
  std::int64_t count = 0;
};
std::optional<ShardName> parse_shard_name(std::string_view file_name);

}  // namespace gpuwright::model::gguf
