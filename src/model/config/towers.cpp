#include "model/config/towers.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/config/decoder.h"

namespace gpuwright::model {
namespace {

void lay_out_tower_block(const Tower& t, const std::string& block, std::int32_t layer, bool first, Plan& plan) {
  const std::int64_t q = t.heads * t.head_dim, kv = t.kv_heads * t.head_dim;
  const auto norm = [&](std::string_view name) {
    if (t.norm_weight) plan.norm(layer, fmt::format("{}.{}", block, name), t.hidden, t.norm_bias, t.role);
  };
  const std::int64_t norms = first ? std::min(t.norms_of_first_block, t.norms_per_block) : t.norms_per_block;
  for (std::int64_t i = 1; i <= norms; ++i) norm(fmt::format("norm{}", i));
  if (t.fused_qkv) {
    plan.linear(t.role, layer, block + ".attn.qkv", q + 2 * kv, t.hidden, {.bias = t.qkv_bias});
  } else {
    plan.linear(t.role, layer, block + ".attn.q_proj", q, t.hidden, {.bias = t.qkv_bias});
    plan.linear(t.role, layer, block + ".attn.k_proj", kv, t.hidden, {.bias = t.qkv_bias && t.key_bias});
    plan.linear(t.role, layer, block + ".attn.v_proj", kv, t.hidden, {.bias = t.qkv_bias});
  }
  plan.linear(t.role, layer, block + ".attn.out_proj", t.hidden, q, {.bias = t.out_bias});
  if (t.head_norms > 0) plan.vector(t.role, layer, block + ".attn.head_norms", t.head_norms);
  if (t.gated) plan.linear(t.role, layer, block + ".mlp.gate_proj", t.width, t.hidden, {.bias = t.mlp_bias});
  plan.linear(t.role, layer, block + ".mlp.fc1", t.width, t.hidden, {.bias = t.mlp_bias});
  plan.linear(t.role, layer, block + ".mlp.fc2", t.hidden, t.width, {.bias = t.mlp_bias});
  if (t.extra_per_block > 0) plan.vector(t.role, layer, block + ".scales", t.extra_per_block);
}

}  // namespace

void lay_out_tower(const Tower& t, Plan& plan) {
  if (t.patch_inputs > 0) {
    plan.matrix(t.role, -1, t.prefix + ".patch_embedding.weight", t.hidden, t.patch_inputs);
    if (t.patch_bias) plan.vector(t.role, -1, t.prefix + ".patch_embedding.bias", t.hidden);
  }
  if (t.class_tokens > 0) plan.matrix(t.role, -1, t.prefix + ".class_embedding", t.class_tokens, t.hidden);
  if (t.position_rows > 0) plan.matrix(t.role, -1, t.prefix + ".position_embedding.weight", t.position_rows, t.hidden);
  for (std::int64_t i = 0; i < t.layers; ++i)
    lay_out_tower_block(t, fmt::format("{}.layers.{}", t.prefix, i), t.numbered ? static_cast<std::int32_t>(i) : -1,
                        i == 0 && t.norms_of_first_block < 2, plan);
  for (std::int64_t i = 0; i < t.outer_norms; ++i)
    plan.norm(-1, fmt::format("{}.outer_norm{}", t.prefix, i + 1), t.hidden, t.norm_bias, t.role);
}

void add_layers(const Tower& t, Model& model) {
  Layer layer;
  layer.attention = attention_of({.heads = t.heads, .kv_heads = t.kv_heads, .head_dim = t.head_dim});
  layer.attention.causal = false;
  layer.feed_forward = {.width = t.width, .gated = t.gated};
  model.layers.assign(static_cast<std::size_t>(t.layers), layer);
}

Encoder encoder_of(const Tower& tower, std::int64_t positions) {
  return {.layers = tower.layers,
          .hidden = tower.hidden,
          .heads = tower.heads,
          .feed_forward_width = tower.width,
          .positions = positions};
}

}  // namespace gpuwright::model
