#include "model/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "base/text.h"
#include "model/config.h"
#include "model/folder_choice.h"
#include "model/pytorch_bin.h"
#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

constexpr std::int64_t kMaxConfigBytes = 16 << 20;

struct Path {
  std::string folder;  // "." when none is written
  std::string file;
};

Path split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// A view of a folder that shows only some of its files, so that naming one file of a folder means that file.
class SomeFiles : public ModelFiles {
 public:
  SomeFiles(const ModelFiles& all, std::vector<std::string> shown) : all_(all), shown_(std::move(shown)) {
    std::sort(shown_.begin(), shown_.end());
  }
  const std::string& name() const override { return all_.name(); }
  int concurrency() const override { return all_.concurrency(); }
  Result<std::unique_ptr<ByteSource>> open(const std::string& file) const override { return all_.open(file); }
  Result<std::vector<std::string>> list() const override { return shown_; }

 private:
  const ModelFiles& all_;
  std::vector<std::string> shown_;
};

// "model-00002-of-00005.safetensors" stands for the whole model.
bool is_a_shard(const std::string& file) {
  return file.find("-of-") != std::string::npos;
}

Result<Model> load_safetensors(const ModelFiles& folder, const std::string& file, const LoadOptions& options) {
  if (is_a_shard(file)) return load_folder(folder, options);
  return load_folder(SomeFiles(folder, {file, "config.json"}), options);
}

Result<Model> load_config(const std::string& path, const LoadOptions& options) {
  const std::string text = GW_TRY(read_file(path, kMaxConfigBytes));
  return model_from_config(GW_TRY(parse_json(text, path)), path, options);
}

Result<Model> load_pickle(const ModelFiles& folder, const std::string& file, const LoadOptions& options) {
  const auto config_file = GW_TRY(folder.open("config.json"));
  const std::string text = GW_TRY(read_whole(*config_file, kMaxConfigBytes));
  const Json config = GW_TRY(parse_json(text, config_file->name()));
  return model_of_pickles(folder, {WeightsKind::pytorch_bin, {file}}, config, options);
}

Result<Model> load_local_file(const std::string& path, const LoadOptions& options) {
  const Path parts = split_path(path);
  const auto folder = local_folder(parts.folder);
  const std::string ending = lower(parts.file);
  if (ending.ends_with(".safetensors")) return load_safetensors(*folder, parts.file, options);
  if (ending.ends_with(".index.json")) return load_folder(SomeFiles(*folder, {parts.file, "config.json"}), options);
  if (ending.ends_with(".json")) return load_config(path, options);
  if (ending.ends_with(".bin") || ending.ends_with(".pt") || ending.ends_with(".pth") || ending.ends_with(".ckpt")) {
    if (path_exists(parts.folder + "/config.json")) return load_pickle(*folder, parts.file, options);
    return fail(ErrorCode::unsupported, fmt::format("{} is a PyTorch pickle, and pickles are never opened", path),
                "put the model's config.json beside it, or convert it to safetensors");
  }
  const auto file = GW_TRY(open_file(path));
  std::array<char, 4> magic{};
  GW_TRY(file->read_at(0, std::as_writable_bytes(std::span(magic))));
  if (ending.ends_with(".gguf") || std::string_view(magic.data(), magic.size()) == "GGUF")
    return read_gguf(*file, folder.get(), options);
  return fail(ErrorCode::bad_input, fmt::format("{} is no model file that is known", path),
              "known are *.gguf, *.safetensors, *.onnx, config.json, *.index.json, and folders with them");
}

// The cache of huggingface_hub: models--org--name/{refs/main, snapshots/<commit>/...}.
std::string inside_hub_cache(const std::string& path) {
  const auto snapshots = list_directory(path + "/snapshots");
  if (!snapshots || snapshots->empty()) return path;
  const auto commit = read_file(path + "/refs/main", 256);
  const std::string wanted(commit ? trim(*commit) : std::string_view(snapshots->back()));
  return path + "/snapshots/" + (stays_inside(wanted) ? wanted : snapshots->back());
}

bool is_size(std::string_view text) {
  if (text.size() < 2 || text.size() > 12) return false;
  const char unit = text.back();
  return (unit == 'B' || unit == 'b' || unit == 'M' || unit == 'm') && to_number(text.substr(0, text.size() - 1));
}

bool looks_like_a_path(std::string_view text) {
  for (const char* ending : {".gguf", ".safetensors", ".onnx", ".bin", ".json", ".pt", ".pth"})
    if (lower(text).ends_with(ending)) return true;
  return text.starts_with('/') || text.starts_with("./") || text.starts_with("../") || text.ends_with('/');
}

Result<Model> load_by_name(const std::string& text) {
  if (is_size(text)) return model_of_size(text);
  if (looks_like_a_path(text))
    return fail_at(ErrorCode::not_found, {text, std::nullopt, std::nullopt}, "no such file or folder");
  auto found = preset(text);
  if (found || found.error().code != ErrorCode::not_found) return found;
  if (std::count(text.begin(), text.end(), '/') == 1)
    found.error().hint = fmt::format("a repository of the Hugging Face Hub is written hf://{}", text);
  return found;
}

Result<Model> load_named(const std::string& text, const LoadOptions& options) {
  if (text.empty() || text.find('\0') != std::string::npos)
    return fail(ErrorCode::bad_input, "a model is needed: a file, a folder, hf://org/name, a preset or a size");
  if (is_directory(text)) return load_folder(*local_folder(inside_hub_cache(text)), options);
  if (path_exists(text)) return load_local_file(text, options);
  return load_by_name(text);
}

}  // namespace

Result<Model> load(std::string_view reference, const LoadOptions& options) {
  Model model = GW_TRY(load_named(std::string(reference), options));
  if (model.name.empty()) model.name = reference;
  return model;
}

}  // namespace gpuwright::model
