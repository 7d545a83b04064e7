#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "model/assemble.h"
#include "model/config.h"
#include "model/folder_choice.h"
#include "model/folder_views.h"
#include "model/load.h"
#include "model/name_table.h"
#include "model/pytorch_bin.h"
#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

constexpr std::int64_t kMaxConfigBytes = 16 << 20;
constexpr std::size_t kMaxNames = 20'000;

class LocalFolder : public ModelFiles {
 public:
  LocalFolder(std::string name, std::string path) : name_(std::move(name)), path_(std::move(path)) {}

  const std::string& name() const override { return name_; }
  int concurrency() const override { return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u)); }

  Result<std::unique_ptr<ByteSource>> open(const std::string& file) const override {
    if (!stays_inside(file))
      return fail(ErrorCode::bad_input, fmt::format("\"{}\" is not a file of {}", file.substr(0, 200), name_));
    return open_file(path_ + file);
  }

  // The folder's own files, and those of its folders: repositories keep parts in "onnx/" or "Q4_K_M/".
  Result<std::vector<std::string>> list() const override {
    std::vector<std::string> names;
    for (const std::string& name : GW_TRY(list_directory(path_.empty() ? "." : path_))) {
      if (name.starts_with('.')) continue;
      if (!is_directory(path_ + name)) {
        names.push_back(name);
      } else if (const auto inner = list_directory(path_ + name)) {
        for (const std::string& file : *inner) names.push_back(name + "/" + file);
      }
      if (names.size() > kMaxNames)
        return fail(ErrorCode::bad_input, fmt::format("{} holds more than {} files", name_, kMaxNames),
                    "name the model's own folder");
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string name_;
  std::string path_;  // with "/" behind; empty for the current folder
};

Result<std::optional<Json>> read_config(const ModelFiles& files) {
  const auto file = files.open("config.json");
  if (!file && file.error().code == ErrorCode::not_found) return std::nullopt;
  if (!file) return tl::unexpected(file.error());
  const std::string text = GW_TRY(read_whole(**file, kMaxConfigBytes));
  return GW_TRY(parse_json(text, (*file)->name()));
}

// An index whose shards are all elsewhere still says how large they are: the config gives the tensors.
Result<std::optional<Model>> model_without_shards(const ModelFiles& files, const std::string& index_name,
                                                  const Json& config, const LoadOptions& options) {
  const ShardIndex index = GW_TRY(read_shard_index(files, index_name));
  for (const std::string& shard : index.shards)
    if (const auto file = files.open(shard); file || file.error().code != ErrorCode::not_found) return std::nullopt;
  Model model = GW_TRY(model_from_config(config, files.name(), options));
  std::string note = fmt::format("None of the {} shards that {} names is here: tensors are laid out from config.json",
                                 index.shards.size(), index_name);
  note += index.total_size ? fmt::format(", {}; the index says that they take {}.", to_string(model.weight_bytes()),
                                         to_string(Bytes{*index.total_size}))
                           : std::string(".");
  model.assumptions.push_back(std::move(note));
  return model;
}

Result<Model> model_of_index(const ModelFiles& files, const std::string& index_name, const std::optional<Json>& config,
                             const LoadOptions& options) {
  auto weights = read_safetensors_index(files, index_name);
  if (!weights && weights.error().code == ErrorCode::not_found && config)
    if (auto model = GW_TRY(model_without_shards(files, index_name, *config, options))) return std::move(*model);
  return assemble(GW_TRY(std::move(weights)), config ? &*config : nullptr, files.name(), options);
}

Result<WeightsFile> read_files(const ModelFiles& files, const std::vector<std::string>& names) {
  WeightsFile all;
  for (const std::string& name : names) {
    const auto file = GW_TRY(files.open(name));
    WeightsFile part = GW_TRY(read_safetensors(*file));
    all.header_bytes += part.header_bytes;
    all.file_bytes += part.file_bytes;
    all.files.push_back(name);
    all.tensors.insert(all.tensors.end(), part.tensors.begin(), part.tensors.end());
    std::move(part.texts.begin(), part.texts.end(), std::back_inserter(all.texts));
  }
  if (names.size() == 1) return all;
  NameTable seen;
  for (const StoredTensor& tensor : all.tensors)
    if (!seen.insert(tensor.name).added)
      return fail(ErrorCode::bad_input,
                  fmt::format("{}: tensor \"{}\" is in more than one .safetensors file, and no index says which counts",
                              files.name(), tensor.name.substr(0, 200)),
                  "name the file that is meant");
  return all;
}

}  // namespace

std::unique_ptr<ModelFiles> local_folder(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  // "." and ".." name nothing to people.
  const std::string_view last = std::string_view(path).substr(path.rfind('/') + 1);
  std::string name = last == "." || last == ".." ? real_name(path) : path;
  if (path == ".")
    path.clear();
  else
    path += '/';
  return std::make_unique<LocalFolder>(std::move(name), std::move(path));
}

Result<Model> load_folder(const ModelFiles& files, const LoadOptions& options) {
  const std::vector<std::string> names = GW_TRY(files.list());
  const WeightsChoice choice = GW_TRY(choose_weights(names, options.variant, files.name()));
  if (options.progress && !choice.files.empty()) options.progress(choice.files.front());
  if (choice.kind == WeightsKind::gguf || choice.kind == WeightsKind::onnx)
    return load_file_of(files, choice.files.front(), options);

  const std::optional<Json> config = GW_TRY(read_config(files));
  switch (choice.kind) {
    case WeightsKind::safetensors_index:
      return model_of_index(files, choice.files.front(), config, options);
    case WeightsKind::safetensors:
      return assemble(GW_TRY(read_files(files, choice.files)), config ? &*config : nullptr, files.name(), options);
    case WeightsKind::pytorch_index:
    case WeightsKind::pytorch_bin:
      if (config) return model_of_pickles(files, choice, *config, options);
      return fail(ErrorCode::unsupported,
                  fmt::format("{} holds PyTorch pickles without a config.json; pickles are never opened", files.name()),
                  "add config.json, or convert the weights to safetensors");
    default:
      if (config) return model_from_config(*config, files.name(), options);
      return fail(ErrorCode::not_found,
                  fmt::format("{} holds no model: no config.json, *.safetensors, *.gguf or *.onnx", files.name()));
  }
}

}  // namespace gpuwright::model
