// Tensor shapes of the selective-state layers. Sources: modeling_mamba.py, modeling_mamba2.py, modeling_jamba.py,
// modeling_qwen3_next.py, modeling_lfm2.py of transformers v5; Mamba (arXiv 2312.00752), Mamba-2 (arXiv 2405.21060),
// Gated Delta Networks (arXiv 2412.06464).
#include "model/config/mixers.h"

#include <fmt/format.h>

namespace gpuwright::model {
namespace {

struct Place {
  std::int64_t hidden;
  const Recurrent& r;
  const Mixer& mixer;
  const std::string& module;
  std::int32_t layer;
  Plan& plan;

  std::string name(std::string_view leaf) const { return fmt::format("{}.{}", module, leaf); }
  void linear(std::string_view leaf, std::int64_t outputs, std::int64_t inputs, bool bias = false) const {
    plan.linear(TensorRole::recurrent, layer, name(leaf), outputs, inputs, {.bias = bias});
  }
  void vector(std::string_view leaf, std::int64_t elements) const {
    plan.vector(TensorRole::recurrent, layer, name(leaf), elements);
  }
  void convolution(std::string_view leaf, std::int64_t channels) const {
    plan.matrix(TensorRole::recurrent, layer, name(leaf) + ".weight", channels, r.d_conv);
    if (mixer.conv_bias) vector(fmt::format("{}.bias", leaf), channels);
  }
};

void lay_out_mamba1(const Place& at) {
  const std::int64_t rank = at.mixer.dt_rank;
  at.linear("in_proj", 2 * at.r.d_inner, at.hidden, at.mixer.projection_bias);
  at.convolution("conv1d", at.r.d_inner);
  at.linear("x_proj", rank + 2 * at.r.d_state, at.r.d_inner);
  at.linear("dt_proj", at.r.d_inner, rank, true);
  at.plan.matrix(TensorRole::recurrent, at.layer, at.name("A_log"), at.r.d_inner, at.r.d_state);
  at.vector("D", at.r.d_inner);
  at.linear("out_proj", at.hidden, at.r.d_inner, at.mixer.projection_bias);
  if (!at.mixer.inner_norms) return;
  at.vector("dt_layernorm.weight", rank);
  at.vector("b_layernorm.weight", at.r.d_state);
  at.vector("c_layernorm.weight", at.r.d_state);
}

void lay_out_mamba2(const Place& at) {
  const std::int64_t convolved = at.r.d_inner + 2 * at.r.n_group * at.r.d_state;
  at.linear("in_proj", at.r.d_inner + convolved + at.r.heads, at.hidden, at.mixer.projection_bias);
  at.convolution("conv1d", convolved);
  at.vector("dt_bias", at.r.heads);
  at.vector("A_log", at.r.heads);
  at.vector("D", at.r.heads);
  if (at.mixer.gated_norm > 0) at.vector("norm.weight", at.mixer.gated_norm);
  at.linear("out_proj", at.hidden, at.r.d_inner, at.mixer.projection_bias);
}

void lay_out_gated_delta_net(const Place& at) {
  const std::int64_t keys = at.r.key_heads * at.r.key_dim, values = at.r.value_heads * at.r.value_dim;
  at.linear("in_proj_qkv", 2 * keys + values, at.hidden);
  at.linear("in_proj_z", values, at.hidden);
  at.linear("in_proj_b", at.r.value_heads, at.hidden);
  at.linear("in_proj_a", at.r.value_heads, at.hidden);
  at.convolution("conv1d", 2 * keys + values);
  at.vector("dt_bias", at.r.value_heads);
  at.vector("A_log", at.r.value_heads);
  at.vector("norm.weight", at.r.value_dim);
  at.linear("out_proj", at.hidden, values);
}

void lay_out_short_convolution(const Place& at) {
  at.linear("in_proj", 3 * at.hidden, at.hidden, at.mixer.projection_bias);
  at.convolution("conv", at.r.d_inner);
  at.linear("out_proj", at.hidden, at.r.d_inner, at.mixer.projection_bias);
}

}  // namespace

void lay_out_mixer(std::int64_t hidden, const Block& block, const std::string& module, std::int32_t layer, Plan& plan) {
  const Place at{hidden, block.layer.recurrent, block.mixer, module, layer, plan};
  switch (block.layer.recurrent.kind) {
    case RecurrentKind::mamba1:
      return lay_out_mamba1(at);
    case RecurrentKind::mamba2:
      return lay_out_mamba2(at);
    case RecurrentKind::gated_delta_net:
      return lay_out_gated_delta_net(at);
    case RecurrentKind::short_convolution:
      return lay_out_short_convolution(at);
    case RecurrentKind::none:
    case RecurrentKind::rwkv:  // RWKV families lay out their own blocks
      return;
  }
}

Recurrent gated_delta_net_of(const Fields& config) {
  Recurrent r;
  r.kind = RecurrentKind::gated_delta_net;
  r.key_heads = config.size({"linear_num_key_heads"}, 16, kMaxHeads);
  r.value_heads = config.size({"linear_num_value_heads"}, 32, kMaxHeads);
  r.key_dim = config.size({"linear_key_head_dim"}, 128, kMaxHeads);
  r.value_dim = config.size({"linear_value_head_dim"}, 128, kMaxHeads);
  r.d_conv = config.size({"linear_conv_kernel_dim"}, 4, 256);
  // In the terms of llama.cpp's ssm_* keys: inner size, state per head, groups of keys.
  r.d_inner = r.value_heads * r.value_dim;
  r.d_state = r.key_dim;
  r.n_group = r.key_heads;
  return r;
}

}  // namespace gpuwright::model
