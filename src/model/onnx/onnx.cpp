// An ONNX file as a Model of kind other: its weights exact, its graph told, its layers unknown.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "model/folder_choice.h"
#include "model/onnx/proto.h"
#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

using onnx::Initializer;
using onnx::Proto;

std::string file_stem(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

class ExternalFiles {
 public:
  ExternalFiles(const ByteSource& graph, const ModelFiles* folder, const LoadOptions& options)
      : graph_(graph), folder_(folder), options_(options) {}

  // Of the tensor's data; an error when the file is absent, too short, or not in the folder.
  Result<Bytes> bytes_of(const Initializer& tensor) {
    const std::string_view location = tensor.location;
    if (!stays_inside(location.starts_with("./") ? location.substr(2) : location))
      return refuse(ErrorCode::bad_input,
                    fmt::format("tensor \"{}\" names \"{}\", which is not a file in the model's folder", tensor.name,
                                tensor.location));
    const std::int64_t size = GW_TRY(size_of(tensor.location));
    const std::int64_t room = size - std::min(tensor.offset, size);
    const std::int64_t length = tensor.length >= 0 ? tensor.length : tensor.type.bits != 0 ? tensor.stored_bytes : room;
    if (length > room)
      return refuse(ErrorCode::bad_input,
                    fmt::format("tensor \"{}\" needs {} bytes from {} on in {}, which has {}", tensor.name, length,
                                tensor.offset, tensor.location, size),
                    "the file is cut off or not fully downloaded");
    if (tensor.type.bits != 0 && length != tensor.stored_bytes)
      return refuse(ErrorCode::bad_input, fmt::format("tensor \"{}\" has {} bytes in {}, where its shape asks for {}",
                                                      tensor.name, length, tensor.location, tensor.stored_bytes));
    return Bytes{length};
  }

  const std::map<std::string, std::int64_t>& sizes() const { return sizes_; }

 private:
  tl::unexpected<Error> refuse(ErrorCode code, std::string what, std::string hint = {}) const {
    return fail_at(code, {graph_.name(), std::nullopt, std::nullopt}, std::move(what), std::move(hint));
  }

  Result<std::int64_t> size_of(const std::string& location) {
    if (const auto known = sizes_.find(location); known != sizes_.end()) return known->second;
    if (folder_ == nullptr)
      return refuse(ErrorCode::not_found, fmt::format("its weights are in {}, and it came alone", location));
    if (options_.progress) options_.progress(location);
    const auto file = folder_->open(location);
    if (!file && file.error().code == ErrorCode::not_found)
      return refuse(ErrorCode::not_found, fmt::format("its weights are in {}, which is absent", location),
                    "download it too");
    if (!file) return tl::unexpected<Error>(file.error());
    return sizes_[location] = (*file)->size();
  }

  const ByteSource& graph_;
  const ModelFiles* folder_;
  const LoadOptions& options_;
  std::map<std::string, std::int64_t> sizes_;
};

Tensor to_tensor(Initializer&& source, Bytes bytes) {
  Tensor tensor;
  tensor.name = std::move(source.name);
  tensor.role = source.is_index ? TensorRole::quantization : TensorRole::other;
  tensor.dtype = source.type.dtype;
  tensor.rows = source.rows;
  tensor.columns = source.columns;
  tensor.bytes = bytes;
  return tensor;
}

// Names with the most bytes first: "F32", "I8".
std::string main_format(const std::map<std::string, std::int64_t>& bytes_of) {
  const auto most = std::max_element(bytes_of.begin(), bytes_of.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes_of.end() ? std::string() : most->first;
}

}  // namespace

Result<Model> read_onnx(const ByteSource& file, const ModelFiles* folder, const LoadOptions& options) {
  Proto proto = GW_TRY(onnx::read_proto(file));
  ExternalFiles external(file, folder, options);
  Model model;
  model.source = Source::onnx;
  model.kind = ModelKind::other;
  model.architecture = model.family = "onnx";
  model.name = file_stem(file.name());
  std::map<std::string, std::int64_t> bytes_of;
  std::int64_t without_data = 0;
  std::optional<std::int64_t> elements = 0, total = 0;
  model.tensors.reserve(proto.initializers.size());
  for (Initializer& tensor : proto.initializers) {
    const Bytes bytes = tensor.external ? GW_TRY(external.bytes_of(tensor)) : Bytes{tensor.stored_bytes};
    elements = elements ? checked_add(*elements, tensor.rows * tensor.columns) : std::nullopt;
    total = total ? checked_add(*total, bytes.count) : std::nullopt;
    if (!elements || !total)
      return fail_at(ErrorCode::bad_input, {file.name(), std::nullopt, std::nullopt},
                     "its tensors together have more elements or bytes than 63 bits can count");
    without_data += tensor.has_data ? 0 : 1;
    bytes_of[tensor.type.name] += bytes.count;
    model.tensors.push_back(to_tensor(std::move(tensor), bytes));
  }
  if (without_data > 0)
    model.assumptions.push_back(
        fmt::format("{} tensors have a shape and no data in the file; they are counted by their shape", without_data));
  model.tensors_are_exact = true;
  model.weight_format = main_format(bytes_of);
  model.file_bytes = Bytes{file.size()};
  for (const auto& [name, size] : external.sizes()) {
    model.file_bytes += Bytes{size};
    proto.info.external_files.push_back(name);
  }
  model.graph = std::move(proto.info);
  return model;
}

}  // namespace gpuwright::model
