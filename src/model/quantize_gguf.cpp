#include "model/quantize_gguf.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"

namespace gpuwright::model {
namespace {

using Category = GgufCategory;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}
bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return contains(text, part); });
}

struct NamePart {
  std::string_view part;
  Category category;
};

// Names of GGUF itself, in llama-quant.cpp's order of tests.
constexpr std::array kGgufNames = {
    NamePart{"attn_qkv.weight", Category::attention_qkv},
    NamePart{"attn_kv_b.weight", Category::attention_kv_b},
    NamePart{"attn_v.weight", Category::attention_v},
    NamePart{"attn_k.weight", Category::attention_k},
    NamePart{"attn_q.weight", Category::attention_q},
    NamePart{"attn_output.weight", Category::attention_output},
    NamePart{"ffn_up", Category::ffn_up},
    NamePart{"ffn_gate", Category::ffn_gate},
    NamePart{"ffn_down", Category::ffn_down},
};

// Names that Hugging Face models give the same matrices (gguf-py/gguf/tensor_mapping.py). Longer names first.
constexpr std::array kAttentionNames = {
    NamePart{"query_key_value", Category::attention_qkv},
    NamePart{"in_proj_qkv", Category::attention_qkv},  // linear attention: becomes attn_qkv too
    NamePart{"qkv_proj", Category::attention_qkv},
    NamePart{"c_attn", Category::attention_qkv},
    NamePart{"Wqkv", Category::attention_qkv},
    NamePart{"wqkv", Category::attention_qkv},
    NamePart{"q_proj", Category::attention_q},
    NamePart{"k_proj", Category::attention_k},
    NamePart{"v_proj", Category::attention_v},
    NamePart{"o_proj", Category::attention_output},
    NamePart{"out_proj", Category::attention_output},
    NamePart{"attention.output.dense", Category::attention_output},
    NamePart{"attention.dense", Category::attention_output},
    NamePart{"self_attn.dense", Category::attention_output},
    NamePart{"attn.c_proj", Category::attention_output},
    NamePart{"attention.wo", Category::attention_output},
    NamePart{"query", Category::attention_q},
    NamePart{"key", Category::attention_k},
    NamePart{"value", Category::attention_v},
    NamePart{"dense", Category::attention_output},
};
constexpr std::array kFeedForwardNames = {
    NamePart{"gate_up_proj", Category::ffn_up},
    NamePart{"down_proj", Category::ffn_down},
    NamePart{"dense_4h_to_h", Category::ffn_down},
    NamePart{"dense_h_to_4h", Category::ffn_up},
    NamePart{"output.dense", Category::ffn_down},
    NamePart{"intermediate.dense", Category::ffn_up},
    NamePart{"gate_proj", Category::ffn_gate},
    NamePart{"up_proj", Category::ffn_up},
    NamePart{"fc_in", Category::ffn_up},
    NamePart{"fc_out", Category::ffn_down},
    NamePart{"c_fc", Category::ffn_up},
    NamePart{"c_proj", Category::ffn_down},
    NamePart{"fc1", Category::ffn_up},
    NamePart{"fc2", Category::ffn_down},
    NamePart{"linear_in", Category::ffn_up},
    NamePart{"linear_out", Category::ffn_down},
    NamePart{".w1", Category::ffn_gate},
    NamePart{".w2", Category::ffn_down},
    NamePart{".w3", Category::ffn_up},
    NamePart{"input_linear", Category::ffn_up},
    NamePart{"output_linear", Category::ffn_down},
};

template <std::size_t N>
Category lookup(const std::array<NamePart, N>& table, std::string_view name) {
  for (const NamePart& row : table)
    if (contains(name, row.part)) return row.category;
  return Category::other;
}

bool is_gguf_name(std::string_view name) {
  return name.substr(0, 4) == "blk." || name == "token_embd.weight" || name == "output.weight" ||
         name == "output_norm.weight";
}

Category category_of(const Tensor& tensor) {
  switch (tensor.role) {
    case TensorRole::token_embedding:
      return Category::token_embedding;
    case TensorRole::output_head:
      return Category::output;
    default:
      break;
  }
  if (is_gguf_name(tensor.name)) return lookup(kGgufNames, tensor.name);
  switch (tensor.role) {
    case TensorRole::attention:
      return lookup(kAttentionNames, tensor.name);
    case TensorRole::feed_forward:
    case TensorRole::expert:
    case TensorRole::shared_expert:
      return lookup(kFeedForwardNames, tensor.name);
    case TensorRole::recurrent:
      return contains(tensor.name, "in_proj_qkv") ? Category::attention_qkv : Category::other;
    case TensorRole::encoder:
    case TensorRole::multi_token_prediction:
    case TensorRole::other: {
      const bool attention = contains_any(tensor.name, {"attn", "attention"});
      return attention ? lookup(kAttentionNames, tensor.name) : lookup(kFeedForwardNames, tensor.name);
    }
    default:
      return Category::other;
  }
}

// Small or delicate tensors that stay as they are (F32): tensor_allows_quantization in llama-quant.cpp and
// prepare_tensors in convert_hf_to_gguf.py.
bool stays_f32(const Tensor& tensor) {
  if (tensor.role == TensorRole::norm || tensor.role == TensorRole::router ||
      tensor.role == TensorRole::position_embedding)
    return true;
  return contains_any(tensor.name,
                      {"_norm.weight",         "layernorm",  "LayerNorm",      "ffn_gate_inp",   "conv1d",
                       "conv.weight",          "A_log",      "ssm_a",          "altup",          "laurel",
                       "per_layer_model_proj", "token_type", "position_embd",  "time_mix_w",     "time_mix_lerp",
                       "attn_rel_b",           "sinks",      "indexer.k_proj", "indexer.q_proj", "tid2eid"});
}

bool is_bias(std::string_view name) {
  return ends_with(name, "bias") || ends_with(name, "_b");
}

// The vision tower goes to a file of its own (mmproj), and most families leave out the multi-token prediction layers.
bool is_dropped(const Model& model, const Tensor& tensor) {
  switch (tensor.role) {
    case TensorRole::quantization:
    case TensorRole::vision:
      return true;
    case TensorRole::multi_token_prediction:
      return model.family.rfind("glm4", 0) != 0 && model.family.rfind("qwen35", 0) != 0;
    default:
      return model.kind == ModelKind::encoder && contains(tensor.name, "pooler");
  }
}

GgufTensor described(const Tensor& tensor) {
  GgufTensor result{tensor, category_of(tensor), false, false};
  result.stacked = tensor.role == TensorRole::expert;
  const bool matrix = tensor.rows > 1;
  result.quantizable = matrix && !stays_f32(tensor) && !is_bias(tensor.name);
  return result;
}

void set_shape(Tensor& tensor, std::int64_t rows, std::int64_t columns) {
  tensor.rows = rows;
  tensor.columns = columns;
  tensor.bytes = storage_bytes(tensor.dtype, rows, columns).value_or(Bytes{}) * tensor.copies;
}

// kv_b_proj (heads x (nope + value) rows of `rank`) is stored as attn_k_b, transposed, and attn_v_b.
void push_split_kv_b(const Attention& attention, const GgufTensor& whole, std::vector<GgufTensor>& out) {
  const std::int64_t nope = attention.key_dim - attention.rope_dim;
  GgufTensor keys = whole, values = whole;
  keys.category = values.category = Category::other;
  keys.stacked = values.stacked = true;
  keys.tensor.name += ".k_b";
  values.tensor.name += ".v_b";
  set_shape(keys.tensor, attention.heads * attention.kv_lora_rank, nope);
  set_shape(values.tensor, attention.heads * attention.value_dim, attention.kv_lora_rank);
  out.push_back(std::move(keys));
  out.push_back(std::move(values));
}

// Halves of a fused expert matrix become ffn_gate_exps and ffn_up_exps.
void push_split_gate_up(const GgufTensor& whole, std::vector<GgufTensor>& out) {
  GgufTensor gate = whole, up = whole;
  gate.category = Category::ffn_gate;
  up.category = Category::ffn_up;
  set_shape(gate.tensor, whole.tensor.rows / 2, whole.tensor.columns);
  set_shape(up.tensor, whole.tensor.rows - whole.tensor.rows / 2, whole.tensor.columns);
  out.push_back(std::move(gate));
  out.push_back(std::move(up));
}

// in_proj_qkvz -> attn_qkv and attn_gate.
void push_split_qkvz(const Recurrent& recurrent, const GgufTensor& whole, std::vector<GgufTensor>& out) {
  GgufTensor qkv = whole, gate = whole;
  const std::int64_t z_rows = recurrent.value_heads * recurrent.value_dim;
  qkv.category = Category::attention_qkv;
  gate.category = Category::other;
  set_shape(qkv.tensor, whole.tensor.rows - z_rows, whole.tensor.columns);
  set_shape(gate.tensor, z_rows, whole.tensor.columns);
  out.push_back(std::move(qkv));
  out.push_back(std::move(gate));
}

// Baichuan's W_pack becomes attn_q, attn_k and attn_v.
void push_split_pack(const GgufTensor& whole, std::vector<GgufTensor>& out) {
  for (const Category category : {Category::attention_q, Category::attention_k, Category::attention_v}) {
    GgufTensor third = whole;
    third.category = category;
    set_shape(third.tensor, whole.tensor.rows / 3, whole.tensor.columns);
    out.push_back(std::move(third));
  }
}

void push(const Model& model, const Tensor& tensor, std::vector<GgufTensor>& out) {
  GgufTensor one = described(tensor);
  const bool known_layer = tensor.layer >= 0 && static_cast<std::size_t>(tensor.layer) < model.layers.size();
  if (known_layer && !is_gguf_name(tensor.name) && tensor.rows > 1) {
    const Layer& layer = model.layers[static_cast<std::size_t>(tensor.layer)];
    if (contains(tensor.name, "kv_b_proj") && layer.attention.kv_lora_rank > 0)
      return push_split_kv_b(layer.attention, one, out);
    if (contains(tensor.name, "gate_up_proj") && tensor.role == TensorRole::expert)
      return is_bias(tensor.name) ? out.push_back(std::move(one)) : push_split_gate_up(one, out);
    if (contains(tensor.name, "W_pack")) return push_split_pack(one, out);
    if (contains(tensor.name, "in_proj_qkvz") && layer.recurrent.value_heads > 0)
      return push_split_qkvz(layer.recurrent, one, out);
  }
  out.push_back(std::move(one));
}

}  // namespace

std::vector<GgufTensor> gguf_layout(const Model& model) {
  std::vector<const Tensor*> order;
  for (const Tensor& tensor : model.tensors)
    if (!is_dropped(model, tensor)) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const Tensor* a, const Tensor* b) { return a->layer < b->layer; });
  std::vector<GgufTensor> layout;
  layout.reserve(order.size());
  for (const Tensor* tensor : order) push(model, *tensor, layout);
  return layout;
}

}  // namespace gpuwright::model
