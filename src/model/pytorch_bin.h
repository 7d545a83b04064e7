// Inside of the folder loader: PyTorch pickles. They are programs, so they are never opened: only their sizes count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/folder_choice.h"
#include "model/load.h"

namespace gpuwright::model {

struct ShardIndex {
  std::vector<std::string> shards;         // sorted, each once
  std::optional<std::int64_t> total_size;  // of the tensors, in bytes
};
// What *.index.json says of the files beside it, whatever their format.
Result<ShardIndex> read_shard_index(const ModelFiles& folder, const std::string& index_name);

// The model of the config, its sizes checked against those of the files.
Result<Model> model_of_pickles(const ModelFiles& folder, const WeightsChoice& choice, const Json& config,
                               const LoadOptions& options);

}  // namespace gpuwright::model
