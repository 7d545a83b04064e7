// Sources: vllm/v1/core/kv_cache_utils.py (groups, num_blocks), vllm/v1/kv_cache_interface.py (page sizes, blocks of a
// sliding window), vllm/model_executor/layers/mamba/mamba_utils.py (state shapes), v0.10 to v0.21.
//
// Every block id owns one page in each layer of a group. When a model mixes kinds of layers, the hybrid manager forms
// groups of equally many layers with one page size, and all groups draw from the same pool of block ids. Where
// recurrent layers take part, a page must hold a whole state, so the attention block grows until it does.
#include "fit/engines/vllm_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "fit/engines/torch_common.h"
#include "fit/kv_cache.h"

namespace gpuwright::fit {
namespace {

using model::Attention;
using model::AttentionKind;
using model::Dtype;
using model::Layer;
using model::RecurrentKind;

// Flash-MLA of sparse models stores 512 fp8 values, four fp32 scales and 64 rotary bf16 values a token.
constexpr std::int64_t kSparseLatentFp8 = 512 + 4 * 4 + 64 * 2;
// The indexer keeps its keys in fp8 with one fp32 scale for each 128.
constexpr std::int64_t kIndexerScale = 4;

std::int64_t part(std::int64_t value, std::int64_t ranks) {
  return divide_up(value, std::max<std::int64_t>(ranks, 1));
}

bool is_eight_bit(Dtype type) {
  return type == Dtype::f8_e4m3 || type == Dtype::f8_e5m2;
}

std::int64_t window_blocks(const Attention& attention, const VllmCacheRequest& request, std::int64_t block) {
  const std::int64_t in_window = attention.kind == AttentionKind::sliding
                                     ? attention.window - 1 + request.max_batched_tokens
                                     : attention.window + request.max_batched_tokens;
  const std::int64_t held = std::min(in_window, request.tokens);
  return divide_up(held, block) + (attention.kind == AttentionKind::sliding ? 1 : 0);
}

struct Kind {
  AttentionKind attention = AttentionKind::full;
  std::int64_t window = 0;
  auto operator<=>(const Kind&) const = default;
};

}  // namespace

LayerRange pipeline_layers(std::size_t layers, std::size_t stages, std::size_t stage) {
  std::vector<std::size_t> counts(stages, layers / stages);
  const std::size_t rest = layers % stages;
  for (std::size_t i = 0; i < rest; ++i) {
    const std::size_t from_end = i + 2;  // the last stage also holds the output head
    ++counts[stages >= from_end ? stages - from_end : i % stages];
  }
  LayerRange range;
  for (std::size_t i = 0; i < stage; ++i) range.first += counts[i];
  range.last = range.first + counts[stage];
  return range;
}

Bytes vllm_token_bytes(const Attention& attention, std::int64_t ranks, Dtype key, Dtype value) {
  if (attention.cached_elements_per_token() == 0) return {};
  if (attention.kind == AttentionKind::latent) {
    const bool sparse = attention.indexer_key_dim > 0;
    const Bytes indexer{sparse ? attention.indexer_key_dim + kIndexerScale * divide_up(attention.indexer_key_dim, 128)
                               : 0};
    if (sparse && is_eight_bit(key)) return Bytes{kSparseLatentFp8} + indexer;
    Attention latent = attention;
    latent.indexer_key_dim = 0;
    return cache_bytes_per_token(latent, key, value) + indexer;
  }
  Attention own = attention;
  own.kv_heads = std::max<std::int64_t>(attention.kv_heads / std::max<std::int64_t>(ranks, 1), 1);
  return cache_bytes_per_token(own, key, value);
}

Bytes vllm_state_bytes(const model::Recurrent& recurrent, std::int64_t ranks, std::int64_t convolution,
                       std::int64_t state) {
  const std::int64_t taps = std::max<std::int64_t>(recurrent.d_conv - 1, 0);
  std::int64_t columns = 0, elements = 0;
  switch (recurrent.kind) {
    case RecurrentKind::mamba2: {
      // Groups that do not divide are replicated so that each rank has its own.
      const std::int64_t groups = std::max(recurrent.n_group, recurrent.n_group < ranks ? ranks : recurrent.n_group);
      columns = part(recurrent.d_inner + 2 * groups * recurrent.d_state, ranks);
      elements = part(recurrent.d_inner, ranks) * recurrent.d_state;
      break;
    }
    case RecurrentKind::gated_delta_net:
      columns = part(2 * recurrent.key_heads * recurrent.key_dim + recurrent.value_heads * recurrent.value_dim, ranks);
      elements = part(recurrent.value_heads, ranks) * recurrent.key_dim * recurrent.value_dim;
      break;
    default:
      return recurrent_bytes(recurrent, Bytes{convolution}, Bytes{state}).scaled(1.0 / static_cast<double>(ranks));
  }
  return Bytes{columns * taps * convolution + elements * state};
}

std::int64_t VllmCache::blocks_per_sequence() const {
  std::int64_t total = 0;
  for (const CacheGroup& group : groups) total += group.blocks_per_sequence;
  return total;
}

Bytes VllmCache::attention_bytes(std::int64_t sequences) const {
  Bytes total;
  for (const CacheGroup& group : groups)
    if (!group.recurrent) total += block_bytes() * group.blocks_per_sequence * sequences;
  return total;
}

Bytes VllmCache::recurrent_bytes(std::int64_t sequences) const {
  Bytes total;
  for (const CacheGroup& group : groups)
    if (group.recurrent) total += block_bytes() * group.blocks_per_sequence * sequences;
  return total;
}

namespace {

struct Layout {
  std::map<Kind, std::int64_t> attention;  // layers of each kind
  std::map<Kind, Attention> example;
  Bytes token;  // the widest token of any attention layer
  Bytes state;  // the widest state of any recurrent layer
  std::int64_t recurrent_layers = 0;
};

Layout layout_of(const model::Model& model, const VllmCacheRequest& request) {
  Layout layout;
  for (std::size_t i = request.layers.first; i < request.layers.last && i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    const Bytes token = vllm_token_bytes(layer.attention, request.ranks, request.key, request.value);
    if (token > Bytes{}) {
      const bool windowed =
          request.hybrid_manager && layer.attention.window > 0 &&
          (layer.attention.kind == AttentionKind::sliding || layer.attention.kind == AttentionKind::chunked);
      const Kind kind = windowed ? Kind{layer.attention.kind, layer.attention.window} : Kind{};
      ++layout.attention[kind];
      layout.example[kind] = layer.attention;
      layout.token = std::max(layout.token, token);
    }
    if (layer.recurrent.kind != RecurrentKind::none) {
      ++layout.recurrent_layers;
      const bool wide = layer.recurrent.kind == RecurrentKind::gated_delta_net || model.family.starts_with("nemotron");
      layout.state = std::max(layout.state, vllm_state_bytes(layer.recurrent, request.ranks, 2, wide ? 4 : 2));
    }
  }
  return layout;
}

// As many layers a group as the rarest kind has; when the counts are nearly equal, as many as the most frequent.
std::int64_t layers_per_group(const Layout& layout) {
  std::vector<std::int64_t> counts;
  for (const auto& [kind, layers] : layout.attention) counts.push_back(layers);
  if (layout.recurrent_layers > 0) counts.push_back(layout.recurrent_layers);
  if (counts.empty()) return 0;
  const auto [fewest, most] = std::minmax_element(counts.begin(), counts.end());
  return static_cast<double>(*most) < 1.25 * static_cast<double>(*fewest) ? *most : *fewest;
}

}  // namespace

VllmCache vllm_cache(const model::Model& model, const VllmCacheRequest& request) {
  const Layout layout = layout_of(model, request);
  VllmCache cache;
  cache.block_tokens = std::max<std::int64_t>(request.block_tokens, 1);
  if (layout.recurrent_layers > 0 && layout.token > Bytes{})
    cache.block_tokens =
        std::max(cache.block_tokens, pad_to(divide_up(layout.state.count, layout.token.count), cache.block_tokens));
  const bool only_recurrent = layout.token == Bytes{};
  cache.page = only_recurrent ? layout.state : layout.token * cache.block_tokens;
  cache.layers_per_group = layers_per_group(layout);
  cache.page_formula = only_recurrent
                           ? fmt::format("one state of {}", to_string(layout.state))
                           : fmt::format("{} tokens x {} B", cache.block_tokens, with_thousands(layout.token.count));

  const auto add = [&](std::string what, std::int64_t layers, std::int64_t blocks, bool recurrent) {
    const std::int64_t groups = divide_up(layers, cache.layers_per_group);
    cache.groups.push_back({std::move(what), layers, blocks * groups, recurrent});
  };
  for (const auto& [kind, layers] : layout.attention) {
    const bool windowed = kind.window > 0;
    const std::int64_t full = divide_up(request.tokens, cache.block_tokens);
    const std::int64_t blocks =
        windowed ? std::min(full, window_blocks(layout.example.at(kind), request, cache.block_tokens)) : full;
    add(windowed ? fmt::format("window of {}", kind.window) : "full attention", layers, blocks, false);
  }
  if (layout.recurrent_layers > 0) add("recurrent state", layout.recurrent_layers, 1, true);
  return cache;
}

}  // namespace gpuwright::fit
