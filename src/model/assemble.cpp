#include "model/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/text.h"
#include "model/config.h"
#include "model/packed_weights.h"
#include "model/placed_tensors.h"

namespace gpuwright::model {
namespace {

// Beyond this the plan and the file describe different models.
constexpr double kWorthANote = 0.01;
constexpr double kAbsurdFactor = 3.0;

const Tensor* first_of(const std::vector<Tensor>& tensors, TensorRole role) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& tensor) { return tensor.role == role; });
  return found == tensors.end() ? nullptr : &*found;
}

// The dtype that holds most bytes of the weights.
std::string_view main_format(const std::vector<Tensor>& tensors) {
  std::array<std::int64_t, static_cast<std::size_t>(Dtype::unknown) + 1> bytes{};
  for (const Tensor& tensor : tensors)
    if (tensor.role != TensorRole::quantization) bytes[static_cast<std::size_t>(tensor.dtype)] += tensor.bytes.count;
  const auto most = std::max_element(bytes.begin(), bytes.end());
  return traits(static_cast<Dtype>(most - bytes.begin())).name;
}

// ---------------------------------------------------------------- layers

// Blocks behind the last one of the config are multi-token prediction (DeepSeek-V3: block 61), or do not belong.
Status settle_layers(Model& model, std::string_view name) {
  const auto count = static_cast<std::int32_t>(model.layers.size());
  const bool encoder_apart = model.kind == ModelKind::encoder_decoder;
  std::int32_t last = count - 1;
  bool speculative = model.multi_token_prediction_layers > 0;
  for (Tensor& tensor : model.tensors) {
    if (count == 0 || (encoder_apart && tensor.role == TensorRole::encoder)) tensor.layer = -1;
    last = std::max(last, tensor.layer);
    speculative = speculative || tensor.role == TensorRole::multi_token_prediction;
  }
  if (last < count) return {};
  const std::int32_t extra = last - count + 1;
  if (!speculative || extra > std::max<std::int64_t>(8, model.multi_token_prediction_layers))
    return fail(ErrorCode::bad_input,
                fmt::format("{}: config.json describes {} layers, but the weights have a layer {}", name, count, last),
                "config.json and the weights belong to different models");
  for (Tensor& tensor : model.tensors) {
    if (tensor.layer < count) continue;
    tensor.layer = -1;
    if (tensor.role != TensorRole::quantization) tensor.role = TensorRole::multi_token_prediction;
  }
  if (model.multi_token_prediction_layers == 0) model.multi_token_prediction_layers = extra;
  return {};
}

void note_missing_layers(Model& model) {
  std::vector<char> seen(model.layers.size(), 0);
  for (const Tensor& tensor : model.tensors)
    if (tensor.layer >= 0) seen[static_cast<std::size_t>(tensor.layer)] = 1;
  const auto present = std::count(seen.begin(), seen.end(), 1);
  if (present > 0 && static_cast<std::size_t>(present) < seen.size())
    model.assumptions.push_back(
        fmt::format("The files hold tensors of {} of the {} layers that config.json describes.", present, seen.size()));
}

// ---------------------------------------------------------------- heads

// A tied head is the embedding matrix: it exists once in memory, whether or not the file has a copy of it.
void settle_head(Model& model) {
  const auto head = std::find_if(model.tensors.begin(), model.tensors.end(), [](const Tensor& tensor) {
    return tensor.role == TensorRole::output_head && tensor.name.ends_with("weight");
  });
  const Tensor* embedding = first_of(model.tensors, TensorRole::token_embedding);
  if (embedding == nullptr) return;
  const bool stored = head != model.tensors.end();
  if (model.tied_embeddings && stored && head->weights() == embedding->weights()) {
    model.assumptions.push_back(
        fmt::format("The file also stores {} ({}), a copy of the embedding that the config ties to it; it is "
                    "counted once.",
                    head->name, to_string(head->bytes)));
    model.tensors.erase(head);
  } else if (!model.tied_embeddings && !stored && model.architecture.ends_with("ForCausalLM") &&
             first_of(model.tensors, TensorRole::output_head) == nullptr) {
    model.tied_embeddings = true;
    model.assumptions.emplace_back(
        "The files have no output head, although config.json does not tie it: the embedding is taken for it.");
  }
}

// ---------------------------------------------------------------- counts

Status compare_counts(Model& model, std::int64_t planned, std::string_view name) {
  const std::int64_t stored = model.parameters();
  if (planned <= 0 || stored <= 0) return {};
  const double ratio = static_cast<double>(stored) / static_cast<double>(planned);
  const bool packed = first_of(model.tensors, TensorRole::quantization) != nullptr;
  if (!packed && !model.upper_bound && (ratio > kAbsurdFactor || ratio < 1 / kAbsurdFactor))
    return fail(ErrorCode::bad_input,
                fmt::format("{}: config.json describes a model of {} parameters, the weights hold {}", name,
                            in_billions(planned), in_billions(stored)),
                "config.json and the weights belong to different models, or files are missing");
  if (ratio > 1 + kWorthANote || ratio < 1 - kWorthANote)
    model.assumptions.push_back(
        fmt::format("The weights hold {} parameters, config.json describes {} ({:+.1f} %): the weights are believed.",
                    in_billions(stored), in_billions(planned), 100 * (ratio - 1)));
  return {};
}

// ---------------------------------------------------------------- shapes

bool is_float(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
}

// "self_attn.k_proj.weight" of "model.layers.3.self_attn.k_proj.weight": prefixes differ between repositories.
std::string_view below_layer(std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    std::size_t end = dot + 1;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    if (end > dot + 1 && end < name.size() && name[end] == '.') return name.substr(end + 1);
  }
  return {};
}

// Heads and head sizes are in the shapes of the projections, layer by layer. A config that contradicts them belongs to
// another model, and its cache would be wrong although the weights are counted right.
Status compare_attention(Model& model, const std::vector<Tensor>& planned, std::string_view name) {
  std::map<std::pair<std::int32_t, std::string_view>, const Tensor*> wanted;
  for (const Tensor& tensor : planned)
    if (tensor.role == TensorRole::attention && tensor.layer >= 0 && is_float(tensor.dtype) &&
        tensor.name.ends_with(".weight") && tensor.copies == 1)
      wanted.emplace(std::pair(tensor.layer, below_layer(tensor.name)), &tensor);
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role != TensorRole::attention || !is_float(tensor.dtype)) continue;
    const auto found = wanted.find({tensor.layer, below_layer(tensor.name)});
    if (found == wanted.end() || found->second->weights() == tensor.weights()) continue;
    const std::string what = fmt::format("{} is {} x {}, where config.json asks for {} x {}", tensor.name, tensor.rows,
                                         tensor.columns, found->second->rows, found->second->columns);
    if (!model.upper_bound)
      return fail(ErrorCode::bad_input, fmt::format("{}: {}", name, what),
                  "the head counts (num_attention_heads, num_key_value_heads, head_dim) are not those of the weights");
    model.assumptions.push_back(what + ": the cache follows config.json.");
    return {};
  }
  return {};
}

Model without_config(std::string_view name, const std::vector<Tensor>& tensors) {
  Model model;
  model.name = name;
  model.architecture = "unknown";
  model.kind = ModelKind::other;
  if (const Tensor* embedding = first_of(tensors, TensorRole::token_embedding)) {
    model.vocabulary = embedding->rows;
    model.hidden = embedding->columns;
  }
  model.assumptions.emplace_back(
      "There is no config.json beside the weights: the tensors are known, the layers and their cache are not.");
  return model;
}

}  // namespace

Result<Model> assemble(WeightsFile weights, const Json* config, std::string_view name, const LoadOptions& options) {
  std::vector<Tensor> tensors = placed_tensors(weights.tensors);
  std::vector<StoredTensor>().swap(weights.tensors);
  if (tensors.empty()) return fail(ErrorCode::bad_input, fmt::format("{}: the weights hold no tensors", name));
  Model model = config != nullptr ? GW_TRY(model_from_config(*config, name, options)) : without_config(name, tensors);
  const std::int64_t planned = config != nullptr ? model.parameters() : 0;

  const std::vector<Tensor> plan = std::exchange(model.tensors, std::move(tensors));
  model.tensors_are_exact = true;
  model.source = Source::safetensors;
  model.file_bytes = weights.file_bytes;
  for (std::string& note : weights.notes) model.assumptions.push_back(std::move(note));
  count_packed_weights(model.tensors, config);
  if (model.weight_format.empty() || first_of(model.tensors, TensorRole::quantization) == nullptr)
    model.weight_format = main_format(model.tensors);
  if (config == nullptr) return model;

  GW_TRY(settle_layers(model, name));
  note_missing_layers(model);
  settle_head(model);
  GW_TRY(compare_counts(model, planned, name));
  GW_TRY(compare_attention(model, plan, name));
  return model;
}

}  // namespace gpuwright::model
