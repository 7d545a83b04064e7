// Hugging Face config.json -> layers and the tensor plan of a Model. One function a family; the families are listed
// in config_families(). The oracle of the tests is parameter counts of PyPI transformers on the meta device.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/load.h"
#include "model/model.h"

namespace gpuwright::model {

// Layers, sizes and a laid-out tensor plan in the dtype (and quantisation) that the config declares. Decoder modules
// are named as the family's own Hugging Face code names them; experts of a layer are one tensor with copies. Layers for
// multi-token prediction have the role of that name (transformers does not load them), towers the role vision.
// unsupported: an architecture that is not known, unless options.upper_bound; bad_input: absurd or missing sizes.
Result<Model> model_from_config(const Json& config, std::string_view name, const LoadOptions& options = {});

// model_type values that are understood, sorted.
std::vector<std::string> config_families();

// Presets: data/models.toml, each a config of a published model with its source.
Result<Model> preset(std::string_view name);
std::vector<std::string> preset_names();
// What data/models.toml says about a preset beside its config.
struct PresetFacts {
  std::string id;
  std::vector<std::string> repositories;  // Hugging Face ids of this geometry
  std::string published_parameters;       // "8.03B", of the model card; may be empty
  std::string source;
};
std::vector<PresetFacts> preset_facts();
// "7B", "1.1b", "350M": a Llama-shaped model of about that many parameters, its assumptions recorded.
Result<Model> model_of_size(std::string_view text);

}  // namespace gpuwright::model
