#include "fit/engines/transformers_plan.h"

#include <algorithm>

#include "fit/engines/torch_common.h"

namespace gpuwright::fit {
namespace {

using model::ModelKind;
using model::Tensor;
using model::TensorRole;

Bytes rounded(const Tensor& tensor) {
  const std::int64_t copies = std::max<std::int64_t>(tensor.copies, 1);
  return allocated_block(tensor.bytes / copies) * copies;
}

struct Piece {
  Bytes weights, weights_rounded;
  void add(const Tensor& tensor) {
    weights += tensor.bytes;
    weights_rounded += rounded(tensor);
  }
};

bool belongs_to_head(const Tensor& tensor) {
  return tensor.role == TensorRole::output_head || tensor.role == TensorRole::norm;
}

}  // namespace

std::vector<TransformersStage> balanced_stages(const model::Model& model, std::size_t gpus) {
  Piece front, back;
  std::vector<Piece> layers(model.layers.size());
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role == TensorRole::multi_token_prediction) continue;  // generate() does not load it
    if (tensor.layer >= 0 && static_cast<std::size_t>(tensor.layer) < layers.size())
      layers[static_cast<std::size_t>(tensor.layer)].add(tensor);
    else
      (belongs_to_head(tensor) ? back : front).add(tensor);
  }
  Bytes total = front.weights + back.weights;
  for (const Piece& layer : layers) total += layer.weights;

  std::vector<TransformersStage> stages(gpus);
  const Bytes share = total / static_cast<std::int64_t>(gpus);
  std::size_t next = 0;
  for (std::size_t i = 0; i < gpus; ++i) {
    TransformersStage& stage = stages[i];
    stage.first = i == 0;
    stage.last = i + 1 == gpus;
    stage.first_layer = next;
    const auto take = [&](const Piece& piece) {
      stage.weights += piece.weights;
      stage.weights_rounded += piece.weights_rounded;
    };
    if (stage.first) take(front);
    while (next < layers.size() && (stage.last || stage.weights + layers[next].weights / 2 <= share))
      take(layers[next++]);
    stage.last_layer = next;
    if (stage.last) take(back);
  }
  return stages;
}

TransformersTokens tokens_of(const model::Model& model, const Job& job) {
  TransformersTokens tokens;
  tokens.sequences = job.sequences;
  const std::int64_t context = job.context_tokens.value_or(0);
  const std::int64_t fallback = context > 0 ? context : std::max<std::int64_t>(model.context_length, 1);
  const bool generates =
      model.kind == ModelKind::decoder || model.kind == ModelKind::encoder_decoder || model.kind == ModelKind::other;
  if (!generates) {
    tokens.encoder = job.prompt_tokens.value_or(context);
    if (tokens.encoder == 0 && model.encoder) tokens.encoder = model.encoder->positions;
    if (tokens.encoder == 0) tokens.encoder = fallback;
    tokens.prompt = tokens.cached = 0;
    return tokens;
  }
  if (model.kind == ModelKind::encoder_decoder) {
    // A speech encoder sees a fixed number of frames; a text encoder sees the prompt.
    const bool fixed = model.family == "whisper" && model.encoder && model.encoder->positions > 0;
    tokens.encoder = fixed ? model.encoder->positions : job.prompt_tokens.value_or(fallback);
    tokens.prompt = 1;
    tokens.cached = std::max<std::int64_t>(job.new_tokens.value_or(fallback), 1);
    return tokens;
  }
  tokens.prompt = job.prompt_tokens.value_or(std::max<std::int64_t>(fallback - job.new_tokens.value_or(1), 1));
  const std::int64_t fresh =
      job.new_tokens.value_or(job.prompt_tokens && context > tokens.prompt ? context - tokens.prompt : std::int64_t{1});
  tokens.cached = tokens.prompt + fresh - 1;  // the last token's keys and values are never computed
  return tokens;
}

}  // namespace gpuwright::fit
