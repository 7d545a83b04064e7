#include "fit/engines/torch_common.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gpuwright::fit {
namespace {

using model::Attention;
using model::AttentionKind;
using model::Dtype;
using model::TensorRole;

constexpr std::int64_t kMib = 1 << 20;
constexpr std::int64_t kSmallRounding = 512;
constexpr std::int64_t kOwnSegmentFrom = 10 * kMib;
constexpr std::int64_t kSegmentRounding = 2 * kMib;

constexpr double kMostBytes = 4e18;

Bytes to_bytes(double value) {
  value = std::clamp(value, -kMostBytes, kMostBytes);
  return {static_cast<std::int64_t>(value + (value < 0 ? -0.5 : 0.5))};
}

// Queries, keys, values and the three query-sized temporaries that apply_rotary_pos_emb holds at its end
// (transformers modeling_llama.py); latent attention expands keys and values of every head from the cached latent.
double attention_width(const Attention& attention, const BlockContext& context) {
  if (attention.kind == AttentionKind::none) return 0;
  const double heads = static_cast<double>(attention.heads) / context.ranks;
  const auto key_dim = static_cast<double>(attention.key_dim), value_dim = static_cast<double>(attention.value_dim);
  if (attention.kind == AttentionKind::latent) {
    const auto latent = static_cast<double>(attention.kv_lora_rank + attention.rope_dim + attention.q_lora_rank);
    return heads * (3 * key_dim + 3 * value_dim) + latent;
  }
  const double kv_heads = std::max(static_cast<double>(attention.kv_heads) / context.ranks, 1.0);
  const double repeated = context.expand_keys ? heads * (key_dim + value_dim) : 0;
  return std::max(4 * heads * key_dim + kv_heads * (key_dim + value_dim), 2 * heads * key_dim + repeated);
}

LiveWidth dense_width(const model::FeedForward& block, const BlockContext& context) {
  const double vectors = block.gated ? context.gated_vectors : context.plain_vectors;
  const double width = vectors * static_cast<double>(block.width) / context.ranks;
  return {width, width, width, fmt::format("{} x {} feed-forward", vectors, block.width)};
}

// Grouped kernels hold each token once for each expert it chose: its input, both halves of the first matrix, their
// activation and the product; or, later, its output, the weighted output and their sums. A loop over experts holds only
// the tokens of the expert at hand, and the sum.
LiveWidth expert_width(const model::FeedForward& block, const BlockContext& context) {
  const auto hidden = static_cast<double>(context.hidden);
  const double inner = static_cast<double>(block.expert_width) / context.ranks;
  const auto chosen = static_cast<double>(std::max<std::int64_t>(block.experts_per_token, 1));
  const double share = std::min(1.0, chosen / static_cast<double>(block.experts));
  const double shared = 3 * static_cast<double>(block.shared_width) / context.ranks;
  const double grouped = chosen * std::max(hidden + 4 * inner, 4 * hidden);
  const auto looped = [&](double tokens) { return hidden + std::max(shared, tokens * (hidden + 3 * inner)); };
  if (context.grouped_experts)
    return {looped(share), std::max(hidden + shared, grouped), std::max(hidden + shared, grouped) + hidden,
            fmt::format("{} experts x ({} + 4 x {})", block.experts_per_token, context.hidden, block.expert_width)};
  return {looped(share), looped(std::min(1.0, 2 * share)), looped(1.0),
          fmt::format("{} + share of tokens x ({} + 3 x {} of one expert)", context.hidden, context.hidden,
                      block.expert_width)};
}

}  // namespace

Bytes allocated_block(Bytes size) {
  const Bytes rounded{pad_to(size.count, kSmallRounding)};
  if (rounded.count < kOwnSegmentFrom) return rounded;
  const Bytes segment{pad_to(rounded.count, kSegmentRounding)};
  return segment.count - rounded.count <= kMib ? segment : rounded;
}

Status check_magnitude(const model::Model& model, std::int64_t tokens, std::int64_t sequences) {
  double width = static_cast<double>(std::max(model.vocabulary, model.hidden));
  double cached = 0;
  for (const model::Layer& layer : model.layers) {
    const Attention& attention = layer.attention;
    cached += static_cast<double>(attention.heads) * static_cast<double>(attention.key_dim + attention.value_dim) +
              static_cast<double>(attention.kv_lora_rank + attention.rope_dim + attention.indexer_key_dim);
    width = std::max(width, static_cast<double>(layer.feed_forward.width));
  }
  constexpr double kBytesAnElement = 64;
  const double bytes =
      kBytesAnElement * (width + cached) * static_cast<double>(tokens) * static_cast<double>(sequences);
  if (tokens >= 0 && sequences >= 0 && bytes < kMostBytes) return {};
  return fail(ErrorCode::bad_input,
              fmt::format("{} sequences of {} tokens are more than any memory holds", sequences, tokens));
}

Status check_trained_context(const model::Model& model, const Job& job, std::string_view override_variable) {
  const std::int64_t wanted =
      job.context_tokens.value_or(job.prompt_tokens ? *job.prompt_tokens + job.new_tokens.value_or(1) : 0);
  if (model.context_length <= 0 || wanted <= model.context_length) return {};
  return fail(
      ErrorCode::unsupported,
      fmt::format("{} refuses {} tokens: the context of {} is {}", name_of(job.engine), with_thousands(wanted),
                  model.name, with_thousands(model.context_length)),
      fmt::format("ask for at most {}; the engine's own override is {}", model.context_length, override_variable));
}

std::int64_t activation_bytes(const model::Model& model) {
  Bytes wide, all;
  for (const model::Tensor& tensor : model.tensors) {
    all += tensor.bytes;
    if (tensor.dtype == Dtype::f32) wide += tensor.bytes;
  }
  return wide * 2 > all ? 4 : 2;
}

model::Dtype cache_type(const std::optional<Dtype>& wanted, const model::Model& model) {
  if (wanted) return *wanted;
  return activation_bytes(model) == 4 ? Dtype::f32 : Dtype::bf16;
}

Component ranged(ComponentKind kind, Meter meter, double low, double expected, double high, std::string formula,
                 std::string source) {
  return {kind, meter, to_bytes(low), to_bytes(expected), to_bytes(high), std::move(formula), std::move(source)};
}

Component ranged(ComponentKind kind, Meter meter, const Constant& bytes, std::string formula) {
  return ranged(kind, meter, bytes.low, bytes.expected, bytes.high, std::move(formula), bytes.source);
}

Component cublas_workspace(std::string_view architecture) {
  const std::string wanted = lower(architecture);
  const bool large = wanted == "hopper" || wanted.starts_with("blackwell");
  const Bytes bytes{large ? 4096 * 8 * 1024 : 4096 * 1024 * 2 + 16 * 1024 * 8};
  return Component::exact(ComponentKind::runtime, Meter::allocated, bytes,
                          large ? "cuBLAS workspace :4096:8 = 32 MiB" : "cuBLAS workspace :4096:2:16:8 = 8,519,680 B",
                          "pytorch aten/src/ATen/cuda/CublasHandlePool.cpp, getChosenWorkspaceSize");
}

Result<Component> cuda_context(Engine engine, std::string_view version, std::string_view architecture) {
  const Constant bytes = GW_TRY(constant(engine, "cuda_context_bytes", version, architecture));
  return ranged(ComponentKind::runtime, Meter::device, bytes, "CUDA context, kernels and libraries of one process");
}

BlockContext block_context(const model::Model& model) {
  BlockContext context;
  context.hidden = model.hidden;
  for (const std::string_view family : {"phi3", "glm", "glm4", "chatglm"})
    if (model.family == family) context.gated_vectors = 4;
  for (const std::string_view family : {"phi2", "gpt2", "gptj", "bloom"})
    if (model.family == family) context.plain_vectors = 4;
  return context;
}

LiveWidth live_width(const model::Layer& layer, const BlockContext& context) {
  const auto hidden = static_cast<double>(context.hidden);
  const model::FeedForward& block = layer.feed_forward;
  LiveWidth inner = block.experts > 0 ? expert_width(block, context) : dense_width(block, context);
  // While attention runs the residual is still the block's input. RMSNorm works in fp32: two vectors of twice the
  // width. A parallel block needs no residual of its own, but keeps the attention output: the same count.
  const double attention = attention_width(layer.attention, context) + context.carried * hidden;
  const double norm = (context.carried + (context.fp32_norm ? 4 : 1)) * hidden;
  const double base = (context.carried + 1) * hidden;
  const auto peak = [&](double width) { return std::max({base + width, attention, norm}); };
  const std::string formula =
      base + inner.expected >= std::max(attention, norm)
          ? fmt::format("{} + {} x {} hidden", inner.formula, context.carried + 1, context.hidden)
      : attention > norm ? fmt::format("{:.0f} in attention", attention)
                         : fmt::format("{:.0f} in the fp32 norm", norm);
  return {peak(inner.low), peak(inner.expected), peak(inner.high), formula};
}

namespace {

bool is_key_or_value(const std::string& name) {
  for (const std::string_view part : {"k_proj", "v_proj", "attn_k", "attn_v", ".key.", ".value."})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

Bytes tensor_parallel_share(const model::Model& model, const model::Tensor& tensor, std::int64_t ranks) {
  if (ranks <= 1) return tensor.bytes;
  switch (tensor.role) {
    case TensorRole::norm:
    case TensorRole::router:
    case TensorRole::attention_kv_a:
    case TensorRole::position_embedding:
    case TensorRole::other:
      return tensor.bytes;
    default:
      break;
  }
  if (tensor.role == TensorRole::attention && is_key_or_value(tensor.name) && tensor.layer >= 0 &&
      static_cast<std::size_t>(tensor.layer) < model.layers.size()) {
    const std::int64_t heads = model.layers[static_cast<std::size_t>(tensor.layer)].attention.kv_heads;
    if (heads > 0 && heads < ranks) return tensor.bytes / heads;  // each rank keeps one whole head
  }
  return tensor.bytes.scaled(1.0 / static_cast<double>(ranks));
}

Bytes bytes_of(const model::Model& model, TensorRole role) {
  Bytes total;
  for (const model::Tensor& tensor : model.tensors)
    if (tensor.role == role) total += tensor.bytes;
  return total;
}

Bytes largest_quantized_matrix(const model::Model& model, std::int64_t bits_per_weight) {
  std::int64_t largest = 0;
  for (const model::Tensor& tensor : model.tensors) {
    if (tensor.role == TensorRole::quantization || tensor.copies <= 0) continue;
    const std::int64_t weights = tensor.weights() / tensor.copies;
    if (tensor.bytes.count / tensor.copies * 8 < weights * bits_per_weight) largest = std::max(largest, weights);
  }
  return Bytes{largest * 2};
}

}  // namespace gpuwright::fit
