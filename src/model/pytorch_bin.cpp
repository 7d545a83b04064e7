#include "model/pytorch_bin.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/config.h"

namespace gpuwright::model {
namespace {

// Pickled files carry names and a directory beside the tensors: per mille of a model, not per cent.
constexpr double kContainerShare = 0.01;

}  // namespace

Result<ShardIndex> read_shard_index(const ModelFiles& folder, const std::string& index_name) {
  const auto file = GW_TRY(folder.open(index_name));
  const std::string text = GW_TRY(read_whole(*file, 64 << 20));
  const Json index = GW_TRY(parse_json(text, file->name()));
  const Json* map = index.find("weight_map");
  ShardIndex result;
  std::vector<std::string>& shards = result.shards;
  if (map != nullptr)
    for (const Json::Member& member : map->members()) {
      const std::string shard(member.second.as_string().value_or(""));
      if (!stays_inside(shard))
        return fail_at(ErrorCode::bad_input, {file->name(), std::nullopt, std::nullopt},
                       fmt::format("shard \"{}\" is not a file of this folder", shard.substr(0, 200)));
      if (shards.empty() || shards.back() != shard) shards.push_back(shard);
    }
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  if (shards.empty())
    return fail_at(ErrorCode::bad_input, {file->name(), std::nullopt, std::nullopt}, "it has no weight_map");
  const Json* metadata = index.find("metadata");
  const Json* size = metadata != nullptr ? metadata->find("total_size") : nullptr;
  if (size != nullptr && size->as_int().value_or(-1) >= 0) result.total_size = size->as_int();
  return result;
}

Result<Model> model_of_pickles(const ModelFiles& folder, const WeightsChoice& choice, const Json& config,
                               const LoadOptions& options) {
  Model model = GW_TRY(model_from_config(config, folder.name(), options));
  std::vector<std::string> files = choice.files;
  if (choice.kind == WeightsKind::pytorch_index) files = GW_TRY(read_shard_index(folder, choice.files.front())).shards;
  for (const std::string& name : files) {
    const auto file = GW_TRY(folder.open(name));
    const auto total = checked_add(model.file_bytes.count, file->size());
    if (!total) return fail(ErrorCode::bad_input, fmt::format("{}: impossible file sizes", folder.name()));
    model.file_bytes = {*total};
  }
  model.source = Source::pytorch_bin;
  model.assumptions.emplace_back(
      "PyTorch .bin files are pickles and are not opened: tensors are laid out from config.json.");
  const Bytes planned = model.weight_bytes();
  const double ratio =
      static_cast<double>(model.file_bytes.count) / static_cast<double>(std::max<std::int64_t>(1, planned.count));
  if (ratio < 1 - kContainerShare || ratio > 1 + kContainerShare)
    model.assumptions.push_back(
        fmt::format("The .bin files take {}, the tensors of config.json {}: another number format, or more than the "
                    "model, is stored in them.",
                    to_string(model.file_bytes), to_string(planned)));
  return model;
}

}  // namespace gpuwright::model
