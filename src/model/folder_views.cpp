#include "model/folder_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "model/config.h"
#include "model/folder_choice.h"
#include "model/pytorch_bin.h"
#include "model/weights_file.h"

namespace gpuwright::model {
namespace {

constexpr std::int64_t kMaxConfigBytes = 16 << 20;

class InnerFolder : public ModelFiles {
 public:
  InnerFolder(const ModelFiles& outer, std::string prefix)
      : outer_(outer), prefix_(std::move(prefix)), name_(outer.name() + "/" + prefix_.substr(0, prefix_.size() - 1)) {}

  const std::string& name() const override { return name_; }
  int concurrency() const override { return outer_.concurrency(); }
  Result<std::unique_ptr<ByteSource>> open(const std::string& file) const override {
    if (!stays_inside(file))
      return fail(ErrorCode::bad_input, fmt::format("\"{}\" is not a file of {}", file.substr(0, 200), name_));
    return outer_.open(prefix_ + file);
  }
  Result<std::vector<std::string>> list() const override {
    std::vector<std::string> names;
    for (const std::string& name : GW_TRY(outer_.list()))
      if (name.starts_with(prefix_)) names.push_back(name.substr(prefix_.size()));
    return names;
  }

 private:
  const ModelFiles& outer_;
  std::string prefix_;
  std::string name_;
};

class OnlyFiles : public ModelFiles {
 public:
  OnlyFiles(const ModelFiles& all, std::vector<std::string> shown) : all_(all), shown_(std::move(shown)) {
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

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return text.ends_with(ending); });
}

Result<Json> read_json(const ModelFiles& folder, const std::string& file) {
  const auto source = GW_TRY(folder.open(file));
  const std::string text = GW_TRY(read_whole(*source, kMaxConfigBytes));
  return parse_json(text, source->name());
}

Result<bool> begins_like_gguf(const ByteSource& source) {
  std::array<char, 4> magic{};
  GW_TRY(source.read_at(0, std::as_writable_bytes(std::span(magic))));
  return std::string_view(magic.data(), magic.size()) == "GGUF";
}

Result<Model> load_pickle(const ModelFiles& folder, const std::string& file, const LoadOptions& options) {
  {
    const auto source = GW_TRY(folder.open(file));
    if (GW_TRY(begins_like_gguf(*source))) return read_gguf(*source, &folder, options);
  }
  const auto config = read_json(folder, "config.json");
  if (config) return model_of_pickles(folder, {WeightsKind::pytorch_bin, {file}}, *config, options);
  if (config.error().code != ErrorCode::not_found) return tl::unexpected(config.error());
  return fail(ErrorCode::unsupported,
              fmt::format("{}/{} is a PyTorch pickle, and pickles are never opened", folder.name(), file),
              "put the model's config.json beside it, or convert it to safetensors");
}

}  // namespace

std::unique_ptr<ModelFiles> inner_folder(const ModelFiles& outer, std::string prefix) {
  return std::make_unique<InnerFolder>(outer, std::move(prefix));
}

std::unique_ptr<ModelFiles> only_files(const ModelFiles& all, std::vector<std::string> shown) {
  return std::make_unique<OnlyFiles>(all, std::move(shown));
}

Result<Model> load_file_of(const ModelFiles& folder, const std::string& file, const LoadOptions& options) {
  if (const std::size_t slash = file.rfind('/'); slash != std::string::npos)
    return load_file_of(*inner_folder(folder, file.substr(0, slash + 1)), file.substr(slash + 1), options);
  const std::string ending = lower(file);
  if (ending.ends_with(".safetensors")) {
    if (file.find("-of-") != std::string::npos) return load_folder(folder, options);
    Model model = GW_TRY(load_folder(*only_files(folder, {file, "config.json"}), options));
    // "model.safetensors" is what all are called; any other file names its model better than the folder does.
    if (const std::string stem = file.substr(0, file.rfind('.')); !stem.empty() && lower(stem) != "model")
      model.name = stem;
    return model;
  }
  if (ending.ends_with(".index.json")) return load_folder(*only_files(folder, {file, "config.json"}), options);
  if (ending.ends_with(".json")) return model_from_config(GW_TRY(read_json(folder, file)), folder.name(), options);
  if (ends_with_any(ending, {".bin", ".pt", ".pth", ".ckpt"})) return load_pickle(folder, file, options);

  const auto source = GW_TRY(folder.open(file));
  if (ending.ends_with(".onnx")) return read_onnx(*source, &folder, options);
  if (ending.ends_with(".gguf") || GW_TRY(begins_like_gguf(*source))) return read_gguf(*source, &folder, options);
  return fail(ErrorCode::bad_input, fmt::format("{} is no model file that is known", source->name()),
              "known are *.gguf, *.safetensors, *.onnx, config.json, *.index.json, and folders with them");
}

}  // namespace gpuwright::model
