// Prints what read_safetensors finds in each file, for safetensors_oracle.py: "file" and "ok" or "refused" with the
// reason, then a line a tensor: name, dtype, elements, bytes.
#include <fmt/format.h>

#include "base/file.h"
#include "model/weights_file.h"

namespace {

using namespace gpuwright;

Result<model::WeightsFile> read(const char* path) {
  const auto file = GW_TRY(open_file(path));
  return model::read_safetensors(*file);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const auto file = read(argv[i]);
    fmt::print("file\t{}\t{}\n", argv[i], file ? "ok" : "refused: " + file.error().message());
    if (!file) continue;
    for (const model::StoredTensor& tensor : file->tensors)
      fmt::print("tensor\t{}\t{}\t{}\t{}\n", tensor.name, tensor.format ? tensor.format : "?",
                 tensor.rows * tensor.columns, tensor.bytes.count);
  }
  return 0;
}
