#include "cli/model_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace gpuwright::cli {
namespace {

bool same(const model::Attention& a, const model::Attention& b) {
  return a.kind == b.kind && a.heads == b.heads && a.kv_heads == b.kv_heads && a.key_dim == b.key_dim &&
         a.value_dim == b.value_dim && a.window == b.window && a.kv_lora_rank == b.kv_lora_rank &&
         a.rope_dim == b.rope_dim && a.q_lora_rank == b.q_lora_rank && a.causal == b.causal &&
         a.shares_cache_of == b.shares_cache_of && a.indexer_key_dim == b.indexer_key_dim;
}

bool same(const model::Recurrent& a, const model::Recurrent& b) {
  return a.kind == b.kind && a.d_conv == b.d_conv && a.convolution_elements() == b.convolution_elements() &&
         a.state_elements() == b.state_elements();
}

bool same(const model::FeedForward& a, const model::FeedForward& b) {
  return a.width == b.width && a.gated == b.gated && a.experts == b.experts &&
         a.experts_per_token == b.experts_per_token && a.expert_width == b.expert_width &&
         a.shared_width == b.shared_width;
}

bool same(const model::Layer& a, const model::Layer& b) {
  return same(a.attention, b.attention) && same(a.recurrent, b.recurrent) && same(a.feed_forward, b.feed_forward);
}

}  // namespace

std::vector<LayerGroup> layer_groups(const std::vector<model::Layer>& layers) {
  std::vector<LayerGroup> groups;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const LayerGroup& g) { return same(g.layer, layers[i]); });
    if (group == groups.end())
      groups.push_back({layers[i], {static_cast<std::int64_t>(i)}});
    else
      group->indices.push_back(static_cast<std::int64_t>(i));
  }
  return groups;
}

std::string index_ranges(const std::vector<std::int64_t>& indices) {
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t end = i;
    while (end + 1 < indices.size() && indices[end + 1] == indices[end] + 1) ++end;
    if (!text.empty()) text += ", ";
    text += end == i ? fmt::format("{}", indices[i]) : fmt::format("{}-{}", indices[i], indices[end]);
    i = end + 1;
  }
  return text;
}

std::vector<WeightGroup> weight_groups(const model::Model& model) {
  std::map<std::pair<model::TensorRole, model::Dtype>, WeightGroup> groups;
  for (const model::Tensor& tensor : model.tensors) {
    WeightGroup& group = groups[{tensor.role, tensor.dtype}];
    group.role = name_of(tensor.role);
    group.dtype = model::traits(tensor.dtype).name;
    group.tensors += tensor.copies;
    group.weights += tensor.weights();
    group.bytes += tensor.bytes;
  }
  std::vector<WeightGroup> list;
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return list;
}

std::string_view name_of(model::AttentionKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"none", "full", "sliding", "chunked", "latent"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(model::RecurrentKind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"none", "mamba1",           "mamba2", "gated-delta-net",
                                                      "rwkv", "short-convolution"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(model::ModelKind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"decoder",        "encoder",      "encoder-decoder",
                                                      "vision-encoder", "dual-encoder", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(model::Source source) {
  constexpr std::array<std::string_view, 7> kNames = {"config.json", "safetensors", "gguf",           "onnx",
                                                      "pytorch-bin", "preset",      "parameter-count"};
  return kNames[static_cast<std::size_t>(source)];
}

std::string_view name_of(model::TensorRole role) {
  constexpr std::array<std::string_view, 15> kNames = {"token embedding",  "position embedding",
                                                       "output head",      "norms",
                                                       "attention",        "attention (kv down-projection)",
                                                       "feed-forward",     "experts",
                                                       "shared experts",   "routers",
                                                       "recurrent",        "encoder",
                                                       "vision",           "multi-token prediction",
                                                       "quantisation data"};
  const auto index = static_cast<std::size_t>(role);
  return index < kNames.size() ? kNames[index] : "other";
}

std::string describe(const model::Attention& attention) {
  using model::AttentionKind;
  if (attention.kind == AttentionKind::none) return {};
  if (attention.kind == AttentionKind::latent)
    return fmt::format("MLA, {} heads, latent {} + rope {}", attention.heads, attention.kv_lora_rank,
                       attention.rope_dim);
  const std::string_view sharing = attention.kv_heads == attention.heads ? "MHA"
                                   : attention.kv_heads == 1             ? "MQA"
                                                                         : "GQA";
  std::string text = fmt::format("{}, {} heads", sharing, attention.heads);
  if (attention.kv_heads != attention.heads) text += fmt::format(", {} kv heads", attention.kv_heads);
  text += attention.key_dim == attention.value_dim
              ? fmt::format(" of {}", attention.key_dim)
              : fmt::format(" of {} (keys) and {} (values)", attention.key_dim, attention.value_dim);
  if (attention.kind != AttentionKind::full)
    text += fmt::format(", {} of {} tokens", attention.kind == AttentionKind::sliding ? "window" : "chunks",
                        attention.window);
  if (!attention.causal) text += ", bidirectional";
  if (attention.shares_cache_of) text += fmt::format(", reads the cache of layer {}", *attention.shares_cache_of);
  return text;
}

std::string describe(const model::Recurrent& recurrent) {
  if (recurrent.kind == model::RecurrentKind::none) return {};
  return fmt::format("{}, state of {} + convolution of {} elements a sequence", name_of(recurrent.kind),
                     recurrent.state_elements(), recurrent.convolution_elements());
}

std::string describe(const model::FeedForward& block) {
  if (block.experts > 0) {
    std::string text =
        fmt::format("{} experts of {}, {} a token", block.experts, block.expert_width, block.experts_per_token);
    if (block.shared_width > 0) text += fmt::format(", shared {}", block.shared_width);
    if (block.width > 0) text += fmt::format(", dense {}", block.width);
    return text;
  }
  if (block.width == 0) return {};
  return fmt::format("feed-forward {}{}", block.width, block.gated ? ", gated" : "");
}

}  // namespace gpuwright::cli
