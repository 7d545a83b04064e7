// Prints what the readers of the model room find in a file, for the oracles beside it: one line a tensor (name, type,
// rows, columns, bytes), then lines of totals. Usage: model_dump [--quiet] FILE
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "base/file.h"
#include "model/load.h"
#include "model/weights_file.h"

namespace {

using namespace gpuwright;

bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

Result<model::Model> read(const std::string& path) {
  const auto file = GW_TRY(open_file(path));
  const auto folder = model::local_folder(folder_of(path));
  return ends_with(path, ".onnx") ? model::read_onnx(*file, folder.get(), {})
                                  : model::read_gguf(*file, folder.get(), {});
}

void print(const model::Model& model, bool tensors) {
  for (const model::Tensor& tensor : model.tensors)
    if (tensors)
      fmt::print("tensor\t{}\t{}\t{}\t{}\t{}\n", tensor.name, model::traits(tensor.dtype).name, tensor.rows,
                 tensor.columns, tensor.bytes.count);
  std::int64_t cached = 0;
  for (const model::Layer& layer : model.layers) cached += layer.attention.cached_elements_per_token();
  fmt::print("tensors\t{}\nparameters\t{}\nweight_bytes\t{}\nfile_bytes\t{}\n", model.tensors.size(),
             model.parameters(), model.weight_bytes().count, model.file_bytes.count);
  fmt::print("architecture\t{}\nfamily\t{}\nformat\t{}\nlayers\t{}\nhidden\t{}\nvocabulary\t{}\ncontext\t{}\n",
             model.architecture, model.family, model.weight_format, model.layers.size(), model.hidden, model.vocabulary,
             model.context_length);
  fmt::print("tied\t{}\ncached_elements_per_token\t{}\n", model.tied_embeddings, cached);
  for (const std::string& assumption : model.assumptions) fmt::print("assumption\t{}\n", assumption);
}

}  // namespace

int main(int argc, char** argv) {
  const bool quiet = argc == 3 && std::string_view(argv[1]) == "--quiet";
  if (argc != (quiet ? 3 : 2)) return fmt::print(stderr, "usage: model_dump [--quiet] FILE\n"), 2;
  const auto model = read(argv[argc - 1]);
  if (!model) return fmt::print(stderr, "{}\n", model.error().message()), 2;
  print(*model, !quiet);
  return 0;
}
