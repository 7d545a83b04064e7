#include "fit/testing/decoder.h"

namespace gpuwright::fit::testing {
namespace {

using model::Dtype;
using model::Model;
using model::Tensor;
using model::TensorRole;

void add(Model& model, std::string name, TensorRole role, int layer, std::int64_t rows, std::int64_t columns) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.role = role;
  tensor.dtype = Dtype::bf16;
  tensor.layer = layer;
  tensor.rows = rows;
  tensor.columns = columns;
  tensor.bytes = Bytes{2 * rows * columns};
  model.tensors.push_back(std::move(tensor));
}

void add_block(Model& model, const DecoderShape& shape, int layer) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const std::int64_t query = shape.heads * shape.head_dim, key = shape.kv_heads * shape.head_dim;
  const auto attention = TensorRole::attention;
  add(model, prefix + "self_attn.q_proj.weight", attention, layer, query, shape.hidden);
  add(model, prefix + "self_attn.k_proj.weight", attention, layer, key, shape.hidden);
  add(model, prefix + "self_attn.v_proj.weight", attention, layer, key, shape.hidden);
  add(model, prefix + "self_attn.o_proj.weight", attention, layer, shape.hidden, query);
  if (shape.qkv_bias) add(model, prefix + "self_attn.q_proj.bias", attention, layer, 1, query + 2 * key);
  if (shape.qk_norm) add(model, prefix + "self_attn.q_norm.weight", TensorRole::norm, layer, 2, shape.head_dim);
  const auto feed_forward = TensorRole::feed_forward;
  add(model, prefix + "mlp.gate_proj.weight", feed_forward, layer, shape.ffn, shape.hidden);
  add(model, prefix + "mlp.up_proj.weight", feed_forward, layer, shape.ffn, shape.hidden);
  add(model, prefix + "mlp.down_proj.weight", feed_forward, layer, shape.hidden, shape.ffn);
  add(model, prefix + "input_layernorm.weight", TensorRole::norm, layer, 1, shape.hidden);
  add(model, prefix + "post_attention_layernorm.weight", TensorRole::norm, layer, 1, shape.hidden);

  model::Layer block;
  block.attention.kind = model::AttentionKind::full;
  block.attention.heads = shape.heads;
  block.attention.kv_heads = shape.kv_heads;
  block.attention.key_dim = block.attention.value_dim = shape.head_dim;
  block.feed_forward.width = shape.ffn;
  model.layers.push_back(block);
}

}  // namespace

Model decoder(const DecoderShape& shape) {
  Model model;
  model.name = shape.name;
  model.family = shape.family;
  model.hidden = shape.hidden;
  model.vocabulary = shape.vocabulary;
  model.context_length = shape.context;
  model.tied_embeddings = shape.tied;
  model.weight_format = "BF16";
  add(model, "model.embed_tokens.weight", TensorRole::token_embedding, -1, shape.vocabulary, shape.hidden);
  for (int i = 0; i < shape.layers; ++i) add_block(model, shape, i);
  add(model, "model.norm.weight", TensorRole::norm, -1, 1, shape.hidden);
  if (!shape.tied) add(model, "lm_head.weight", TensorRole::output_head, -1, shape.vocabulary, shape.hidden);
  return model;
}

// Sizes from the models' config.json on Hugging Face.
DecoderShape qwen25_7b() {
  return {"Qwen2.5-7B", "qwen2", 3584, 28, 28, 4, 128, 18944, 152064, 32768, false, true};
}
DecoderShape qwen25_14b() {
  return {"Qwen2.5-14B", "qwen2", 5120, 48, 40, 8, 128, 13824, 152064, 32768, false, true};
}
DecoderShape qwen25_32b() {
  return {"Qwen2.5-32B", "qwen2", 5120, 64, 40, 8, 128, 27648, 152064, 32768, false, true};
}
DecoderShape qwen25_72b() {
  return {"Qwen2.5-72B", "qwen2", 8192, 80, 64, 8, 128, 29568, 152064, 32768, false, true};
}
DecoderShape qwen25_1_5b() {
  return {"Qwen2.5-1.5B", "qwen2", 1536, 28, 12, 2, 128, 8960, 151936, 32768, true, true};
}
DecoderShape qwen3_4b() {
  return {"Qwen3-4B", "qwen3", 2560, 36, 32, 8, 128, 9728, 151936, 40960, true, false, true};
}
DecoderShape qwen3_8b() {
  return {"Qwen3-8B", "qwen3", 4096, 36, 32, 8, 128, 12288, 151936, 40960, false, false, true};
}
DecoderShape llama31_8b() {
  return {"Llama-3.1-8B", "llama", 4096, 32, 32, 8, 128, 14336, 128256, 131072};
}
DecoderShape llama2_7b() {
  return {"Llama-2-7B", "llama", 4096, 32, 32, 32, 128, 11008, 32000, 4096};
}

Target card(std::string name, double gib, std::string architecture) {
  return {std::move(name), Bytes::from_gib(gib), Bytes::from_gib(gib), std::move(architecture), false};
}

}  // namespace gpuwright::fit::testing
