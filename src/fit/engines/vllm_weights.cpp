// vLLM keeps q, k, v in one matrix, gate and up in another, and all experts of a layer in two. PyTorch's allocator
// rounds those of 10 MiB and more, which explains what logs show above parameters / tp:
//   Qwen2.5-32B, tp 2: qkv 35 -> 36, o 25 -> 26, down 135 -> 136 MiB, 64 layers: 192 MiB, + 8 MiB of rotary table
//   = +0.61 % (vllm#15815 logs +0.64 %).
// Sources: vllm/model_executor/layers/linear.py, vocab_parallel_embedding.py, rotary_embedding, mxfp4.py.
#include "fit/engines/vllm_weights.h"

#include <algorithm>
#include <map>
#include <string>

#include "fit/engines/torch_common.h"

namespace gpuwright::fit {
namespace {

using model::Dtype;
using model::Tensor;
using model::TensorRole;

constexpr std::int64_t kVocabularyPadding = 64;

bool contains_any(const std::string& name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

// Tensors that vLLM stores in one allocation get one key; others keep their name.
std::string merged_name(const Tensor& tensor) {
  const std::string prefix = std::to_string(tensor.layer) + ":";
  const bool matrix = tensor.rows > 1 && tensor.columns > 1;
  if (!matrix || tensor.layer < 0) return prefix + tensor.name;
  if (tensor.role == TensorRole::expert) return prefix + (contains_any(tensor.name, {"down", "w2"}) ? "w2" : "w13");
  if (tensor.role == TensorRole::attention &&
      contains_any(tensor.name, {"q_proj", "k_proj", "v_proj", "attn_q.", "attn_k.", "attn_v."}))
    return prefix + "qkv";
  if (contains_any(tensor.name, {"gate_proj", "up_proj", "ffn_gate.", "ffn_up."}))
    return prefix + (tensor.role == TensorRole::shared_expert ? "shared_gate_up" : "gate_up");
  return prefix + tensor.name;
}

Bytes share_of(const model::Model& model, const Tensor& tensor, std::int64_t ranks) {
  const bool vocabulary = tensor.role == TensorRole::token_embedding || tensor.role == TensorRole::output_head;
  if (!vocabulary || tensor.rows <= 0) return tensor_parallel_share(model, tensor, ranks);
  const std::int64_t padded = pad_to(tensor.rows, kVocabularyPadding * ranks);
  return (tensor.bytes.scaled(static_cast<double>(padded) / static_cast<double>(tensor.rows))) / ranks;
}

// Rotary tables reach to the trained context; multi-modal rotary embeddings (Qwen-VL) to four times of it.
Bytes rotary_table(const model::Model& model) {
  std::int64_t width = 0;
  for (const model::Layer& layer : model.layers) {
    const model::Attention& attention = layer.attention;
    if (attention.kind == model::AttentionKind::none || !attention.causal) continue;
    width = std::max(width, attention.kind == model::AttentionKind::latent ? attention.rope_dim : attention.key_dim);
  }
  const bool multimodal = model.vision.has_value() && model.family.starts_with("qwen");
  return Bytes{model.context_length * width * activation_bytes(model)} * (multimodal ? 4 : 1);
}

// Marlin pads the experts' inner width to 128 and the hidden size to 256; other kernels pad one of them.
Bytes mxfp4_padding(const model::Model& model, const Tensor& tensor, const VllmRank& rank, Bytes share) {
  if (tensor.role != TensorRole::expert || tensor.layer < 0 || model.hidden <= 0) return {};
  const bool packed = tensor.dtype == Dtype::mxfp4 || model.weight_format.starts_with("mxfp4") ||
                      model.weight_format.starts_with("MXFP4");
  if (!packed || tensor.bytes.count > tensor.weights()) return {};
  if (static_cast<std::size_t>(tensor.layer) >= model.layers.size()) return {};
  const std::int64_t inner = model.layers[static_cast<std::size_t>(tensor.layer)].feed_forward.expert_width;
  const std::int64_t own = divide_up(inner, rank.tensor_parallel);
  if (own <= 0) return {};
  const double hidden = static_cast<double>(pad_to(model.hidden, 256)) / static_cast<double>(model.hidden);
  const double width = static_cast<double>(pad_to(own, 128)) / static_cast<double>(own);
  const bool marlin = rank.mxfp4_backend == "marlin";
  return share.scaled((marlin ? hidden * width : hidden) - 1);
}

}  // namespace

VllmWeights vllm_weights(const model::Model& model, const VllmRank& rank) {
  VllmWeights weights;
  std::map<std::string, Bytes> allocations;
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role == TensorRole::multi_token_prediction) continue;  // loaded only for speculative decoding
    const bool in_layers = tensor.layer >= 0;
    const auto layer = static_cast<std::size_t>(std::max(tensor.layer, 0));
    // A block beyond the known ones is the last stage's: nothing that is loaded may go uncounted.
    const bool beyond = layer >= model.layers.size() && rank.last_stage;
    if (in_layers && (layer < rank.layers.first || layer >= rank.layers.last) && !beyond) continue;
    if (!in_layers) {
      const bool head = tensor.role == TensorRole::output_head || tensor.role == TensorRole::norm;
      const bool embedding = tensor.role == TensorRole::token_embedding;
      const bool wanted = head        ? rank.last_stage
                          : embedding ? rank.first_stage || (rank.last_stage && model.tied_embeddings)
                                      : rank.first_stage;
      if (!wanted) continue;
    }
    const Bytes share = share_of(model, tensor, rank.tensor_parallel);
    weights.tensors += share;
    weights.padding += mxfp4_padding(model, tensor, rank, share);
    const bool merged_copies = tensor.role == TensorRole::expert || tensor.copies <= 1;
    const std::int64_t pieces = merged_copies ? 1 : tensor.copies;
    if (pieces == 1)
      allocations[merged_name(tensor)] += share;
    else
      weights.rounding += (allocated_block(share / pieces) - share / pieces) * pieces;
  }
  for (const auto& [name, size] : allocations) weights.rounding += allocated_block(size) - size;
  weights.rotary = rotary_table(model);
  return weights;
}

}  // namespace gpuwright::fit
