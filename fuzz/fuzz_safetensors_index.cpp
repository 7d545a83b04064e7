// Any text as an index over two small shards: only files of the folder are opened, and what is read is whole.
#include <cstdlib>

#include "model/folder_choice.h"
#include "model/weights_file.h"

namespace {

using namespace gpuwright;

std::string shard(const std::string& name) {
  const std::string header = "{\"" + name + R"(":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  return bytes + header + "1234";
}

class Folder : public model::ModelFiles {
 public:
  explicit Folder(std::string index) : index_(std::move(index)) {}
  const std::string& name() const override { return name_; }
  Result<std::vector<std::string>> list() const override { return std::vector<std::string>{}; }
  int concurrency() const override { return 1; }
  Result<std::unique_ptr<ByteSource>> open(const std::string& file) const override {
    if (!model::stays_inside(file)) std::abort();
    if (file == "index.json") return bytes_in_memory(index_, file);
    if (file == "a.safetensors") return bytes_in_memory(shard("a"), file);
    if (file == "b.safetensors") return bytes_in_memory(shard("b"), file);
    return fail(ErrorCode::not_found, file);
  }

 private:
  std::string index_;
  std::string name_ = "fuzz";
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Folder folder(std::string(reinterpret_cast<const char*>(data), size));
  const auto weights = model::read_safetensors_index(folder, "index.json");
  if (!weights) return 0;
  Bytes total = weights->header_bytes;
  for (const model::StoredTensor& tensor : weights->tensors) total += tensor.bytes;
  if (total != weights->file_bytes || weights->tensors.size() != weights->files.size()) std::abort();
  return 0;
}
