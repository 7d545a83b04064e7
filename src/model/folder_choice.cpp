#include "model/folder_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace gpuwright::model {
namespace {

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::binary_search(names.begin(), names.end(), name, std::less<>());
}

// "model-00002-of-00005.gguf": stem "model", part 2 of 5.
struct Part {
  std::string stem;
  std::int64_t number = 0;
  std::int64_t count = 0;  // 0: not one of several
};

Part part_of(std::string_view name, std::string_view extension) {
  std::string_view stem = name.substr(0, name.size() - extension.size());
  const std::size_t of = stem.rfind("-of-");
  const std::size_t dash = of == std::string_view::npos || of == 0 ? of : stem.rfind('-', of - 1);
  if (dash == std::string_view::npos) return {std::string(stem), 0, 0};
  const auto number = to_integer(stem.substr(dash + 1, of - dash - 1));
  const auto count = to_integer(stem.substr(of + 4));
  if (!number || !count || *count < 1 || *count > 100'000) return {std::string(stem), 0, 0};
  return {std::string(stem.substr(0, dash)), *number, *count};
}

using Groups = std::map<std::string, std::vector<std::string>>;

Groups grouped(const std::vector<std::string>& files, std::string_view extension) {
  Groups groups;
  for (const std::string& file : files) groups[part_of(file, extension).stem].push_back(file);
  return groups;
}

// Every part that its siblings promise must be there.
Status check_parts(const std::vector<std::string>& files, std::string_view extension, std::string_view folder) {
  const Part first = part_of(files.front(), extension);
  if (first.count == 0) return {};
  if (static_cast<std::int64_t>(files.size()) != first.count || first.number != 1)
    return fail(ErrorCode::bad_input,
                fmt::format("{}: {} of the {} parts of {} are here", folder, files.size(), first.count, first.stem),
                "download the missing parts");
  return {};
}

// "Q4_K_M" is part of "model-Q4_K_M", but not of "model-Q4_K_M_L" nor of "modelQ4_K_M".
bool names_variant(std::string_view stem, std::string_view variant) {
  const std::string text = lower(stem);
  std::string wanted = lower(variant);
  if (wanted.ends_with(".gguf")) wanted.resize(wanted.size() - 5);
  const auto edge = [&](std::size_t at) {
    return at >= text.size() || (!std::isalnum(static_cast<unsigned char>(text[at])) && text[at] != '_');
  };
  for (std::size_t at = text.find(wanted); at != std::string::npos && !wanted.empty(); at = text.find(wanted, at + 1))
    if ((at == 0 || edge(at - 1)) && edge(at + wanted.size())) return true;
  return false;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 40;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

// One of several groups (quantisations, exports) by the user's word, or the only one.
Result<std::vector<std::string>> pick_group(const Groups& groups, std::string_view variant, std::string_view what,
                                            std::string_view folder) {
  std::vector<std::string> names;
  std::vector<std::string> matching;
  for (const auto& [stem, files] : groups) {
    names.push_back(stem);
    if (!variant.empty() && names_variant(stem, variant)) matching.push_back(stem);
  }
  if (variant.empty() && names.size() == 1) return groups.begin()->second;
  if (matching.size() > 1)  // "Q4_K_XL" also names "UD-Q4_K_XL": the plainer name is meant
    std::stable_sort(matching.begin(), matching.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (!matching.empty() && (matching.size() == 1 || matching[0].size() < matching[1].size()))
    return groups.at(matching.front());
  const std::string problem =
      variant.empty() ? fmt::format("{} holds {} {}: {}", folder, names.size(), what, listed(names))
                      : fmt::format("{} holds no single {} named \"{}\": {}", folder, what, variant, listed(names));
  return fail(ErrorCode::bad_input, problem, "choose one with --variant, for example --variant Q4_K_M");
}

std::vector<std::string> select(const std::vector<std::string>& names, std::string_view extension, bool top_level) {
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (name.ends_with(extension) && (!top_level || name.find('/') == std::string::npos)) found.push_back(name);
  return found;
}

Result<WeightsChoice> choose_safetensors(const std::vector<std::string>& names, std::string_view folder) {
  // The order of transformers' modeling_utils.py: the single file, then the index.
  if (contains(names, "model.safetensors")) return WeightsChoice{WeightsKind::safetensors, {"model.safetensors"}};
  if (contains(names, "model.safetensors.index.json"))
    return WeightsChoice{WeightsKind::safetensors_index, {"model.safetensors.index.json"}};
  if (auto indexes = select(names, ".safetensors.index.json", true); indexes.size() == 1)
    return WeightsChoice{WeightsKind::safetensors_index, std::move(indexes)};
  std::vector<std::string> files = select(names, ".safetensors", true);
  const auto is_copy = [](const std::string& name) { return name.starts_with("consolidated"); };
  if (!std::all_of(files.begin(), files.end(), is_copy)) std::erase_if(files, is_copy);
  for (const auto& [stem, parts] : grouped(files, ".safetensors")) GW_TRY(check_parts(parts, ".safetensors", folder));
  return WeightsChoice{WeightsKind::safetensors, std::move(files)};
}

Result<WeightsChoice> choose_gguf(std::vector<std::string> files, std::string_view variant, std::string_view folder) {
  const Groups groups = grouped(files, ".gguf");
  WeightsChoice choice{WeightsKind::gguf, GW_TRY(pick_group(groups, variant, "quantisations", folder))};
  GW_TRY(check_parts(choice.files, ".gguf", folder));
  return choice;
}

Result<WeightsChoice> choose_onnx(std::vector<std::string> files, std::string_view variant, std::string_view folder) {
  if (variant.empty())
    for (const std::string& file : files)
      if (base_name(file) == "model.onnx") return WeightsChoice{WeightsKind::onnx, {file}};
  return WeightsChoice{WeightsKind::onnx, GW_TRY(pick_group(grouped(files, ".onnx"), variant, "ONNX files", folder))};
}

WeightsChoice choose_pickles(const std::vector<std::string>& names) {
  if (contains(names, "pytorch_model.bin")) return {WeightsKind::pytorch_bin, {"pytorch_model.bin"}};
  if (contains(names, "pytorch_model.bin.index.json"))
    return {WeightsKind::pytorch_index, {"pytorch_model.bin.index.json"}};
  std::vector<std::string> files = select(names, ".bin", true);
  std::erase_if(files, [](const std::string& name) { return !name.starts_with("pytorch_model"); });
  return {files.empty() ? WeightsKind::none : WeightsKind::pytorch_bin, std::move(files)};
}

Status refuse_what_is_no_model(const std::vector<std::string>& names, std::string_view folder) {
  if (contains(names, "config.json")) return {};
  if (contains(names, "adapter_config.json"))
    return fail(ErrorCode::unsupported, fmt::format("{} is an adapter (LoRA), not a model", folder),
                "name the base model; adapter_config.json says which it is (base_model_name_or_path)");
  if (contains(names, "model_index.json"))
    return fail(ErrorCode::unsupported, fmt::format("{} is a diffusers pipeline of several models", folder),
                "name one of its folders, for example .../transformer or .../unet");
  return {};
}

}  // namespace

bool stays_inside(std::string_view name) {
  if (name.empty() || name.size() > 1024 || name.find_first_of(std::string_view("\\\0", 2)) != std::string_view::npos)
    return false;
  const std::vector<std::string_view> parts = split(name, '/');
  return std::none_of(parts.begin(), parts.end(),
                      [](std::string_view part) { return part.empty() || part == "." || part == ".."; });
}

Result<WeightsChoice> choose_weights(const std::vector<std::string>& names, std::string_view variant,
                                     std::string_view folder) {
  GW_TRY(refuse_what_is_no_model(names, folder));
  std::vector<std::string> gguf = select(names, ".gguf", false);
  std::erase_if(gguf, [](const std::string& name) { return base_name(name).starts_with("mmproj"); });
  const bool safetensors =
      !select(names, ".safetensors", true).empty() || !select(names, ".safetensors.index.json", true).empty();
  if (!gguf.empty() && (!safetensors || !variant.empty())) return choose_gguf(std::move(gguf), variant, folder);
  if (safetensors) return choose_safetensors(names, folder);
  const WeightsChoice pickles = choose_pickles(names);
  std::vector<std::string> onnx = select(names, ".onnx", false);
  if (!onnx.empty() && (pickles.kind == WeightsKind::none || !variant.empty()))
    return choose_onnx(std::move(onnx), variant, folder);
  return pickles;
}

}  // namespace gpuwright::model
