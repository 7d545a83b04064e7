// read_gguf on arbitrary bytes. The first byte chooses the options.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/weights_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpuwright;
  if (size == 0) return 0;
  model::LoadOptions options;
  options.upper_bound = data[0] % 2 == 1;
  const auto file = bytes_in_memory(std::string(data + 1, data + size), "fuzz-00001-of-00002.gguf");
  const auto model = model::read_gguf(*file, nullptr, options);
  if (!model) return 0;
  if (model->weight_bytes().count > file->size() || model->parameters() < model->active_parameters()) std::abort();
  for (const model::Layer& layer : model->layers)
    if (layer.attention.cached_elements_per_token() < 0 || layer.recurrent.state_elements() < 0) std::abort();
  return 0;
}
