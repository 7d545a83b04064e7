#include "model/model.h"

namespace gpuwright::model {

std::int64_t Attention::cached_elements_per_token() const {
  if (kind == AttentionKind::none || !causal || shares_cache_of) return 0;
  if (kind == AttentionKind::latent) return kv_lora_rank + rope_dim + indexer_key_dim;
  return kv_heads * (key_dim + value_dim) + indexer_key_dim;
}

std::int64_t Recurrent::convolution_elements() const {
  const std::int64_t taps = d_conv > 0 ? d_conv - 1 : 0;
  switch (kind) {
    case RecurrentKind::none:
      return 0;
    case RecurrentKind::mamba1:
    case RecurrentKind::short_convolution:
      return d_inner * taps;
    case RecurrentKind::mamba2:
      return (d_inner + 2 * n_group * d_state) * taps;
    case RecurrentKind::gated_delta_net:
      return (2 * key_heads * key_dim + value_heads * value_dim) * taps;
    case RecurrentKind::rwkv:
      return d_inner * (d_conv > 0 ? taps : 2);
  }
  return 0;
}

std::int64_t Recurrent::state_elements() const {
  switch (kind) {
    case RecurrentKind::none:
    case RecurrentKind::short_convolution:
      return 0;
    case RecurrentKind::mamba1:
    case RecurrentKind::mamba2:
      return d_inner * d_state;
    case RecurrentKind::gated_delta_net:
      return value_heads * key_dim * value_dim;
    case RecurrentKind::rwkv:
      return heads * head_dim * head_dim;
  }
  return 0;
}

std::int64_t Model::parameters() const {
  std::int64_t total = 0;
  for (const Tensor& tensor : tensors)
    if (tensor.role != TensorRole::quantization) total += tensor.weights();
  return total;
}

std::int64_t Model::active_parameters() const {
  std::int64_t total = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.role == TensorRole::quantization || tensor.role == TensorRole::multi_token_prediction) continue;
    std::int64_t weights = tensor.weights();
    if (tensor.role == TensorRole::expert && tensor.layer >= 0 &&
        static_cast<std::size_t>(tensor.layer) < layers.size()) {
      const FeedForward& block = layers[static_cast<std::size_t>(tensor.layer)].feed_forward;
      if (block.experts > 0)
        weights =
            static_cast<std::int64_t>(static_cast<double>(weights) * static_cast<double>(block.experts_per_token) /
                                      static_cast<double>(block.experts));
    }
    total += weights;
  }
  return total;
}

Bytes Model::weight_bytes() const {
  Bytes total;
  for (const Tensor& tensor : tensors) total += tensor.bytes;
  return total;
}

}  // namespace gpuwright::model
