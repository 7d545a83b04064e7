#include "resolve_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "model/config.h"
#include "shape.h"

namespace gpuwright::scorer {
namespace {

// What fine-tunes and re-uploads add to the name of the model whose shape they have.
constexpr std::array<std::string_view, 22> kSuffixes = {
    "-class", "-instruct", "-chat", "-hf",       "-base",    "-it",        "-gguf",      "-awq",
    "-gptq",  "-fp8",      "-bf16", "-bnb-4bit", "-unsloth", "-gptq-int4", "-gptq-int8", "-int4",
    "-int8",  "-v0.1",     "-v0.2", "-v0.3",     "-hf-chat", "-dynamic"};

bool strip_suffix(std::string& name) {
  const std::string lowered = lower(name);
  for (std::string_view suffix : kSuffixes) {
    if (lowered.size() <= suffix.size() || !std::string_view(lowered).ends_with(suffix)) continue;
    name.resize(name.size() - suffix.size());
    return true;
  }
  return false;
}

// The name as written, without its owner, and both with one endearment after the other taken off.
std::vector<std::string> spellings(std::string name) {
  std::vector<std::string> all;
  do {
    all.push_back(name);
    const std::size_t slash = name.rfind('/');
    if (slash != std::string::npos) all.push_back(name.substr(slash + 1));
  } while (strip_suffix(name));
  return all;
}

Result<model::Model> find_preset(const std::string& name) {
  std::optional<Error> first;
  for (const std::string& spelling : spellings(name)) {
    auto found = model::preset(spelling);
    if (found) return found;
    if (!first) first = std::move(found.error());
  }
  return tl::unexpected(*first);
}

void compare(std::vector<std::string>& differences, std::string_view what, std::optional<std::int64_t> told,
             std::int64_t have) {
  if (told && *told != have)
    differences.push_back(fmt::format("the line says {} = {}, the preset {}", what, *told, have));
}

// Facts of the line that the preset contradicts.
Result<std::vector<std::string>> disagreements(const Row& row, const model::Model& model) {
  std::vector<std::string> differences;
  const auto cached = [](const model::Layer& layer) { return layer.attention.kind != model::AttentionKind::none; };
  const auto recurrent = [](const model::Layer& layer) { return layer.recurrent.kind != model::RecurrentKind::none; };
  const auto count = [&](auto&& is) { return std::count_if(model.layers.begin(), model.layers.end(), is); };
  compare(differences, "hidden", GW_TRY(row.arch.integer("hidden")), model.hidden);
  compare(differences, "attn_layers", GW_TRY(row.arch.integer("attn_layers")), count(cached));
  compare(differences, "recurrent_layers", GW_TRY(row.arch.integer("recurrent_layers")), count(recurrent));
  if (model.kind == model::ModelKind::decoder)
    compare(differences, "layers", GW_TRY(row.arch.integer("layers")), static_cast<std::int64_t>(model.layers.size()));
  const auto first = std::find_if(model.layers.begin(), model.layers.end(), cached);
  if (first == model.layers.end() || first->attention.kind == model::AttentionKind::latent) return differences;
  compare(differences, "kv_heads", GW_TRY(row.arch.integer("kv_heads")), first->attention.kv_heads);
  compare(differences, "kv_dim", GW_TRY(row.arch.integer("kv_dim")),
          first->attention.kv_heads * first->attention.key_dim);
  return differences;
}

}  // namespace

Result<ResolvedModel> resolve_model(const Row& row, Need need) {
  if (row.model.empty() && row.arch.pairs().empty()) return fail(ErrorCode::bad_input, "the model is not told");
  auto preset = row.model.empty() ? Result<model::Model>(fail(ErrorCode::not_found, "the model is not named"))
                                  : find_preset(row.model);
  if (preset) {
    std::vector<std::string> notes = GW_TRY(disagreements(row, *preset));
    if (notes.empty()) return ResolvedModel{std::move(*preset), {}};
    // The line's own geometry wins where it is whole; else the published model of that name answers.
    auto shaped = model_from_shape(row, need);
    if (shaped) return ResolvedModel{std::move(*shaped), std::move(notes)};
    return ResolvedModel{std::move(*preset), std::move(notes)};
  }
  auto shaped = model_from_shape(row, need);
  if (!shaped)
    return fail(ErrorCode::unsupported,
                fmt::format("{}; and its shape is not told: {}", preset.error().what, shaped.error().what));
  return ResolvedModel{std::move(*shaped), {"laid out from the line's own geometry"}};
}

model::Model with_layers_of_kind(const model::Model& model, bool windowed) {
  model::Model part = model;
  for (model::Layer& layer : part.layers) {
    const bool is_windowed =
        layer.attention.kind == model::AttentionKind::sliding || layer.attention.kind == model::AttentionKind::chunked;
    if (is_windowed != windowed) {
      // Dimensions stay, so that engines that look at them for the graph still see them; nothing is kept.
      layer.attention.shares_cache_of = 0;
    }
  }
  return part;
}

Result<model::Model> prediction_layers(const Row& row, const model::Model& model) {
  const auto told = GW_TRY(row.arch.integer("mtp_layers"));
  const std::int64_t count = told ? *told : std::max<std::int64_t>(model.multi_token_prediction_layers, 1);
  const auto last = std::find_if(model.layers.rbegin(), model.layers.rend(), [](const model::Layer& layer) {
    return layer.attention.kind == model::AttentionKind::full || layer.attention.kind == model::AttentionKind::latent;
  });
  if (last == model.layers.rend() || count < 1 || count > 64)
    return fail(ErrorCode::unsupported, "the model has no multi-token-prediction layers that are known");
  model::Model part = model;
  part.layers.assign(static_cast<std::size_t>(count), *last);
  for (model::Layer& layer : part.layers) layer.recurrent = {};
  part.multi_token_prediction_layers = 0;
  std::erase_if(part.tensors, [](const model::Tensor& tensor) { return tensor.layer >= 0; });
  return part;
}

model::Model repeating_layers(const model::Model& model) {
  model::Model part = model;
  std::erase_if(part.tensors, [](const model::Tensor& tensor) { return tensor.layer < 0; });
  return part;
}

}  // namespace gpuwright::scorer
