#include "fit/kv_cache.h"

namespace gpuwright::fit {
namespace {

// Caches are laid out a row of all kv heads a token, so block formats pad once a row, not once a head.
Bytes row_bytes(model::Dtype type, std::int64_t elements) {
  return model::storage_bytes(type, 1, elements).value_or(Bytes{});
}

}  // namespace

Bytes cache_bytes_per_token(const model::Attention& attention, model::Dtype key_type, model::Dtype value_type) {
  using model::AttentionKind;
  if (attention.cached_elements_per_token() == 0) return {};
  const Bytes indexer = row_bytes(key_type, attention.indexer_key_dim);
  if (attention.kind == AttentionKind::latent)
    return row_bytes(key_type, attention.kv_lora_rank + attention.rope_dim) + indexer;
  return row_bytes(key_type, attention.kv_heads * attention.key_dim) +
         row_bytes(value_type, attention.kv_heads * attention.value_dim) + indexer;
}

Bytes cache_bytes_per_token(const model::Model& model, model::Dtype key_type, model::Dtype value_type) {
  Bytes total;
  for (const model::Layer& layer : model.layers) total += cache_bytes_per_token(layer.attention, key_type, value_type);
  return total;
}

Bytes recurrent_bytes(const model::Recurrent& recurrent, Bytes convolution_element, Bytes state_element) {
  return convolution_element * recurrent.convolution_elements() + state_element * recurrent.state_elements();
}

}  // namespace gpuwright::fit
