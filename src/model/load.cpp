#include "model/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "model/config.h"
#include "model/folder_choice.h"
#include "model/folder_views.h"
#include "model/hub.h"

namespace gpuwright::model {
namespace {

struct Path {
  std::string folder;  // "." when none is written
  std::string file;
};

Path split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
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
  if (looks_like_a_path(text)) GW_TRY(check_path(text));
  auto found = preset(text);
  if (found || found.error().code != ErrorCode::not_found) return found;
  if (Status cause = check_path(text); !cause && cause.error().code != ErrorCode::not_found)
    return tl::unexpected(std::move(cause.error()));
  if (std::count(text.begin(), text.end(), '/') == 1)
    found.error().hint = fmt::format("a repository of the Hugging Face Hub is written hf://{}", text);
  return found;
}

Result<Model> load_named(const std::string& text, const LoadOptions& options) {
  if (text.empty() || text.find('\0') != std::string::npos)
    return fail(ErrorCode::bad_input, "a model is needed: a file, a folder, hf://org/name, a preset or a size");
  if (is_directory(text)) return load_folder(*local_folder(inside_hub_cache(text)), options);
  if (path_exists(text)) {
    const Path path = split_path(text);
    return load_file_of(*local_folder(path.folder), path.file, options);
  }
  if (is_remote(text)) return load_remote(text, options);
  return load_by_name(text);
}

}  // namespace

Result<Model> load(std::string_view reference, const LoadOptions& options) {
  Model model = GW_TRY(load_named(std::string(reference), options));
  if (model.name.empty()) model.name = reference;
  return model;
}

}  // namespace gpuwright::model
