// read_onnx on arbitrary bytes, beside one external file of a kibibyte.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "model/weights_file.h"

namespace {

using namespace gpuwright;

class OneFile : public model::ModelFiles {
 public:
  const std::string& name() const override { return name_; }
  Result<std::vector<std::string>> list() const override { return std::vector<std::string>{"data"}; }
  Result<std::unique_ptr<ByteSource>> open(const std::string& file) const override {
    if (file.find("..") != std::string::npos || file.front() == '/') std::abort();  // must never be asked for
    if (file != "data") return fail(ErrorCode::not_found, "absent");
    return bytes_in_memory(std::string(1024, '\0'), file);
  }

 private:
  std::string name_ = "folder";
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const OneFile folder;
  const auto file = bytes_in_memory(std::string(data, data + size), "fuzz.onnx");
  const auto model = model::read_onnx(*file, &folder, {});
  if (model && (model->parameters() < 0 || model->weight_bytes().count < 0)) std::abort();
  return 0;
}
