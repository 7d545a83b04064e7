// Inside of the folder loader: config.json and the headers of the weights put together.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "model/load.h"
#include "model/weights_file.h"

namespace gpuwright::model {

// The config gives the layers, the headers the tensors; each is checked against the other. Without a config (null)
// the model has tensors but no layers, and says so. bad_input when the two cannot belong together.
Result<Model> assemble(WeightsFile weights, const Json* config, std::string_view name, const LoadOptions& options);

}  // namespace gpuwright::model
