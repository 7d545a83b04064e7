// Inside of the loaders: views of a folder that show a part of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/load.h"

namespace gpuwright::model {

// The files under `prefix` ("Q4_K_M/"), named without it: readers that look for the other parts of a file find them
// beside it. `outer` must outlive the view.
std::unique_ptr<ModelFiles> inner_folder(const ModelFiles& outer, std::string prefix);

// Lists only these files, so that naming one file of a folder means that file; all can be opened.
std::unique_ptr<ModelFiles> only_files(const ModelFiles& all, std::vector<std::string> shown);

// One file of a folder: *.gguf, *.safetensors (a shard stands for its model), *.onnx, *.bin, *.index.json, config.json.
Result<Model> load_file_of(const ModelFiles& folder, const std::string& file, const LoadOptions& options);

}  // namespace gpuwright::model
