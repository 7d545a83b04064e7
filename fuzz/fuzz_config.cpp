// config.json from anybody: whatever the bytes say, model_from_config answers or refuses, and what it answers adds up.
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "model/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = gpuwright::parse_json(text, "config.json");
  if (!config) return 0;
  for (const bool upper_bound : {false, true}) {
    gpuwright::model::LoadOptions options;
    options.upper_bound = upper_bound;
    const auto model = gpuwright::model::model_from_config(*config, "config.json", options);
    if (!model) {
      if (model.error().what.empty()) std::abort();
      continue;
    }
    if (model->tensors.empty() || model->parameters() < 0 || model->weight_bytes().count < 0) std::abort();
    std::int64_t cached = 0;
    for (const gpuwright::model::Layer& layer : model->layers) {
      cached += layer.attention.cached_elements_per_token() + layer.recurrent.convolution_elements() +
                layer.recurrent.state_elements();
    }
    if (cached < 0) std::abort();
  }
  return 0;
}
