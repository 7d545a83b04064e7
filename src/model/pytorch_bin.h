// Inside of the folder loader: PyTorch pickles. They are programs, so they are never opened: only their sizes count.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/folder_choice.h"
#include "model/load.h"

namespace gpuwright::model {

// The model of the config, its sizes checked against those of the files.
Result<Model> model_of_pickles(const ModelFiles& folder, const WeightsChoice& choice, const Json& config,
                               const LoadOptions& options);

}  // namespace gpuwright::model
