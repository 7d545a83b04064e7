// Inside of the folder loader: which files of a folder or repository make up the model. Pure: it sees names only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuwright::model {

enum class WeightsKind {
  safetensors_index,  // files[0] is the index
  safetensors,        // one or several files
  gguf,               // files[0] is the first (or only) part
  onnx,               // files[0]
  pytorch_index,      // files[0] is the index
  pytorch_bin,        // one or several pickles
  none,               // config.json alone
};

struct WeightsChoice {
  WeightsKind kind = WeightsKind::none;
  std::vector<std::string> files;
};

// `names` are sorted and relative; `variant` is LoadOptions::variant. Errors: bad_input when the choice between
// several quantisations is the user's, or parts are missing; unsupported for adapters and pipelines.
Result<WeightsChoice> choose_weights(const std::vector<std::string>& names, std::string_view variant,
                                     std::string_view folder);

// Relative, and never out of the folder: no "." or ".." or empty part, no backslash, no NUL.
bool stays_inside(std::string_view name);

}  // namespace gpuwright::model
