#include "fit/engines/llama_cpp_graph.h"

#include <algorithm>
#include <string_view>

#include "fit/engines/llama_cpp_blocks.h"

namespace gpuwright::fit {
namespace {

using model::AttentionKind;
using model::RecurrentKind;
using Tensor = ComputeGraph::Tensor;
constexpr std::int64_t kFloat = 4, kHalf = 2, kInt = 4, kIndex = 8;

// What the tensors of the model say about its blocks.
struct Traits {
  bool fused_qkv = false;
  bool qk_norm = false;
  bool query_gate = false;   // q projection gives queries and a gate of the same size
  bool second_norm = false;  // a parallel block whose feed-forward part has a norm of its own (GPT-NeoX)
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Linear-attention layers of Qwen3-Next and later have a fused qkv of their own.
bool attends(const model::Model& model, std::int32_t layer) {
  return layer >= 0 && static_cast<std::size_t>(layer) < model.layers.size() &&
         model.layers[static_cast<std::size_t>(layer)].attention.kind != AttentionKind::none;
}

Traits traits_of(const model::Model& model) {
  Traits traits;
  for (const model::Layer& layer : model.layers)
    if (layer.recurrent.kind == RecurrentKind::gated_delta_net) traits.query_gate = true;
  traits.second_norm = model.parallel_block && contains(model.family, "neox");
  for (const model::Tensor& tensor : model.tensors) {
    const bool attention = tensor.role == model::TensorRole::attention && attends(model, tensor.layer);
    if (attention &&
        (contains(tensor.name, "qkv") || contains(tensor.name, "query_key_value") || contains(tensor.name, "c_attn")))
      traits.fused_qkv = true;
    if (contains(tensor.name, "q_norm") || contains(tensor.name, "q_layernorm")) traits.qk_norm = true;
  }
  return traits;
}

class Builder {
 public:
  Builder(const model::Model& model, const GraphPlan& plan)
      : model_(model), plan_(plan), traits_(traits_of(model)), graph_(plan.devices, plan.copies) {}

  void whole() {
    inputs();
    Tensor current = embeddings();
    for (std::size_t il = 0; il < model_.layers.size(); ++il) {
      graph_.on(plan_.layer_buffer[il]);
      current = block(il, current, il + 1 == model_.layers.size());
    }
    head(current);
  }

  std::vector<ComputeGraph::Reserved> reserve() const { return graph_.reserve(); }

 private:
  std::int64_t width(std::int64_t elements) const { return kFloat * plan_.tokens * elements; }

  // ------------------------------------------------------------ inputs

  void inputs() {
    const std::int64_t tokens = plan_.tokens;
    tokens_ = graph_.input("inp_tokens", kInt * tokens);
    if (plan_.both_embeddings) graph_.input("inp_embd", width(model_.hidden));
    positions_ = graph_.input("inp_pos", kInt * tokens * (traits_.query_gate ? 4 : 1));
    out_ids_ = graph_.input("inp_out_ids", kInt * plan_.outputs);
    if (plan_.full_cells > 0) mask_ = mask("KQ_mask", plan_.full_cells);
    if (plan_.swa_cells > 0) swa_mask_ = mask("KQ_mask_swa", plan_.swa_cells);
    if (has_recurrence()) state_ids_ = graph_.input("s_copy", kInt * plan_.sequences);
    if (plan_.quantized_cache && plan_.rotated_cache) rotations();
  }

  bool has_recurrence() const {
    return std::any_of(model_.layers.begin(), model_.layers.end(),
                       [](const model::Layer& layer) { return layer.recurrent.kind != RecurrentKind::none; });
  }

  Tensor mask(std::string_view name, std::int64_t cells) {
    const std::int64_t element = plan_.flash_attention && plan_.half_mask ? kHalf : kFloat;
    indices_.push_back(graph_.input("kv_idxs", 2 * kIndex * plan_.tokens));
    return graph_.input(name, element * cells * plan_.tokens);
  }

  void rotations() {
    std::int64_t key_dim = 0;
    for (const model::Layer& layer : model_.layers) key_dim = std::max(key_dim, layer.attention.key_dim);
    std::int64_t side = 64;
    while (key_dim > 0 && key_dim % (2 * side) == 0) side *= 2;
    key_rotation_ = graph_.input("k_rot", kFloat * side * side);
    value_rotation_ = graph_.input("v_rot", kFloat * 64 * 64);
  }

  Tensor embeddings() {
    graph_.on(ComputeGraph::kHost);
    return graph_.op("inp_embd", width(model_.hidden), {tokens_});
  }

  Tensor attention_mask(bool sliding) {
    Tensor& converted = sliding ? swa_mask_half_ : mask_half_;
    const Tensor full = sliding ? swa_mask_ : mask_;
    if (!plan_.flash_attention || plan_.half_mask) return full;
    if (converted == ComputeGraph::none()) {
      const std::int64_t cells = sliding ? plan_.swa_cells : plan_.full_cells;
      converted = graph_.op("KQ_mask f16", kHalf * cells * plan_.tokens, {full});
    }
    return converted;
  }

  // ------------------------------------------------------------ one block

  Tensor norm(Tensor input, std::int64_t bytes, std::string_view name) {
    return scaled_norm(graph_, input, bytes, name);
  }

  Tensor block(std::size_t il, Tensor input, bool last) {
    const model::Layer& layer = model_.layers[il];
    const Tensor normed = norm(input, width(model_.hidden), "attn_norm");
    Tensor mixed = ComputeGraph::none();
    if (layer.recurrent.kind != RecurrentKind::none)
      mixed = recurrent_block(graph_, model_, plan_, layer.recurrent, normed, state_ids_);
    if (layer.attention.kind != AttentionKind::none) {
      const Tensor attended = attention(layer.attention, normed);
      mixed = mixed == ComputeGraph::none() ? attended
                                            : graph_.in_place("attn_out", width(model_.hidden), {mixed, attended});
    }
    if (mixed == ComputeGraph::none()) mixed = normed;
    Tensor residual = input;
    Tensor ffn_input = normed;
    const std::int64_t rows = last ? plan_.outputs : plan_.tokens;
    const std::int64_t bytes = kFloat * rows * model_.hidden;
    if (last) {
      mixed = graph_.op("get_rows", bytes, {mixed, out_ids_});
      residual = graph_.op("get_rows", bytes, {residual, out_ids_});
      if (model_.parallel_block && !traits_.second_norm) ffn_input = graph_.op("get_rows", bytes, {normed, out_ids_});
    }
    if (traits_.second_norm) ffn_input = norm(residual, bytes, "ffn_norm");
    return feed_forward_block(il, mixed, residual, ffn_input, rows);
  }

  Tensor feed_forward_block(std::size_t il, Tensor mixed, Tensor residual, Tensor parallel_input, std::int64_t rows) {
    const std::int64_t bytes = kFloat * rows * model_.hidden;
    const model::FeedForward& block = model_.layers[il].feed_forward;
    if (block.width == 0 && block.experts == 0) return graph_.in_place("l_out", bytes, {mixed, residual});
    if (model_.parallel_block) {
      const Tensor ffn = feed_forward(graph_, model_, plan_, il, parallel_input, rows);
      const Tensor sum = graph_.in_place("ffn_out", bytes, {ffn, mixed});
      return graph_.in_place("l_out", bytes, {sum, residual});
    }
    const Tensor ffn_input = graph_.in_place("ffn_inp", bytes, {mixed, residual});
    const Tensor normed = norm(ffn_input, bytes, "ffn_norm");
    const Tensor ffn = feed_forward(graph_, model_, plan_, il, normed, rows);
    return graph_.in_place("l_out", bytes, {ffn, ffn_input});
  }

  // ------------------------------------------------------------ attention

  struct Projections {
    Tensor query, key, value, gate;
  };

  Tensor rotated_by_position(Tensor projected, std::int64_t bytes, std::string_view name) {
    Tensor view = graph_.view(projected);
    if (traits_.qk_norm) view = norm(view, bytes, name);
    return graph_.in_place(name, bytes, {view, positions_});
  }

  Projections projections(const model::Attention& attention, Tensor input) {
    const std::int64_t q_bytes = width(attention.heads * attention.key_dim);
    const std::int64_t k_bytes = width(attention.kv_heads * attention.key_dim);
    const std::int64_t v_bytes = width(attention.kv_heads * attention.value_dim);
    Projections result{};
    result.gate = ComputeGraph::none();
    if (traits_.fused_qkv) {
      const Tensor qkv = graph_.op("wqkv", q_bytes + k_bytes + v_bytes, {input});
      const auto cut = [&](std::int64_t bytes, std::string_view name) {
        const Tensor view = graph_.view(qkv);
        return plan_.old_qkv_copies ? graph_.view(graph_.op(name, bytes, {view})) : view;
      };
      result.query = graph_.in_place("Qcur", q_bytes, {cut(q_bytes, "Qcur"), positions_});
      result.key = graph_.in_place("Kcur", k_bytes, {cut(k_bytes, "Kcur"), positions_});
      result.value = cut(v_bytes, "Vcur");
      return result;
    }
    if (traits_.query_gate) {
      const Tensor both = graph_.op("Qcur_full", 2 * q_bytes, {input});
      result.query = rotated_by_position(both, q_bytes, "Qcur");
      result.gate = graph_.view(both);
    } else {
      result.query = rotated_by_position(graph_.op("Qcur", q_bytes, {input}), q_bytes, "Qcur");
    }
    result.value = graph_.view(graph_.op("Vcur", v_bytes, {input}));
    result.key = rotated_by_position(graph_.op("Kcur", k_bytes, {input}), k_bytes, "Kcur");
    return result;
  }

  Tensor attention(const model::Attention& attention, Tensor input) {
    if (attention.kind == AttentionKind::latent) return latent_attention(attention, input);
    const std::int64_t q_bytes = width(attention.heads * attention.key_dim);
    Projections parts = projections(attention, input);
    if (key_rotation_ != ComputeGraph::none()) rotate(attention, parts);
    const bool sliding =
        plan_.swa_cells > 0 && (attention.kind == AttentionKind::sliding || attention.kind == AttentionKind::chunked);
    if (!attention.shares_cache_of) {
      graph_.sink({parts.key});
      graph_.sink({parts.value});
    }
    const std::int64_t out_bytes = width(attention.heads * attention.value_dim);
    Tensor attended = attend(attention.heads, out_bytes, parts.query, sliding);
    if (parts.gate != ComputeGraph::none()) {
      const Tensor gate = graph_.op("gate", q_bytes, {parts.gate});
      const Tensor open = graph_.in_place("gate_sigmoid", q_bytes, {gate});
      attended = graph_.in_place("attn_gated", out_bytes, {attended, open});
    }
    return graph_.op("attn_out", width(model_.hidden), {attended});
  }

  void rotate(const model::Attention& attention, Projections& parts) {
    parts.query = graph_.op("Qrot", width(attention.heads * attention.key_dim), {parts.query, key_rotation_});
    parts.key = graph_.op("Krot", width(attention.kv_heads * attention.key_dim), {parts.key, key_rotation_});
    parts.value = graph_.op("Vrot", width(attention.kv_heads * attention.value_dim), {parts.value, value_rotation_});
  }

  Tensor attend(std::int64_t heads, std::int64_t out_bytes, Tensor query, bool sliding) {
    const Tensor queries = graph_.view(query);
    if (plan_.flash_attention) {
      const Tensor out = graph_.op("kqv_out", out_bytes, {queries, attention_mask(sliding)});
      return graph_.view(out);
    }
    const std::int64_t cells = sliding ? plan_.swa_cells : plan_.full_cells;
    const std::int64_t scores_bytes = width(cells * heads);
    const Tensor scores = graph_.op("kq", scores_bytes, {queries});
    const Tensor softmax = graph_.in_place("kq_soft_max", scores_bytes, {scores, sliding ? swa_mask_ : mask_});
    const Tensor values = graph_.view(graph_.op("kqv", out_bytes, {softmax}));
    return graph_.op("kqv_out", out_bytes, {values});
  }

  // Absorbed MLA: queries meet the latent itself, as one key head of rank + rope elements.
  Tensor latent_attention(const model::Attention& attention, Tensor input) {
    const std::int64_t heads = attention.heads, rank = attention.kv_lora_rank, rope = attention.rope_dim;
    Tensor low = input;
    if (attention.q_lora_rank > 0) {
      low = graph_.op("q_a", width(attention.q_lora_rank), {input});
      low = norm(low, width(attention.q_lora_rank), "q_a_norm");
    }
    const Tensor q = graph_.op("q", width(heads * attention.key_dim), {low});
    const Tensor q_pe = graph_.in_place("q_pe", width(heads * rope), {graph_.view(q), positions_});
    const Tensor kv = graph_.op("kv_cmpr_pe", width(rank + rope), {input});
    const Tensor k_pe = graph_.in_place("k_pe", width(rope), {graph_.view(kv), positions_});
    const Tensor latent = norm(graph_.view(kv), width(rank), "kv_cmpr");
    const Tensor absorbed = graph_.view(graph_.op("q_nope_absorbed", width(heads * rank), {graph_.view(q)}));
    const Tensor query = graph_.op("Qcur", width(heads * (rank + rope)), {absorbed, q_pe});
    const Tensor key = graph_.op("Kcur", width(rank + rope), {graph_.view(latent), k_pe});
    graph_.sink({key});
    const Tensor attended = attend(heads, width(heads * rank), query, false);
    const Tensor values =
        graph_.view(graph_.op("kqv_mla", width(heads * attention.value_dim), {graph_.view(attended)}));
    const Tensor joined = graph_.op("kqv_out", width(heads * attention.value_dim), {values});
    return graph_.op("attn_out", width(model_.hidden), {joined});
  }

  // ------------------------------------------------------------ head

  void head(Tensor current) {
    graph_.on(plan_.output_buffer);
    const Tensor normed = norm(current, kFloat * plan_.outputs * model_.hidden, "result_norm");
    if (model_.kind == model::ModelKind::encoder) return graph_.sink({normed});
    graph_.op("result_output", kFloat * plan_.outputs * model_.vocabulary, {normed});
  }

  const model::Model& model_;
  const GraphPlan& plan_;
  Traits traits_;
  ComputeGraph graph_;
  Tensor tokens_ = -1, positions_ = -1, out_ids_ = -1, state_ids_ = -1;
  Tensor mask_ = -1, swa_mask_ = -1, mask_half_ = -1, swa_mask_half_ = -1;
  Tensor key_rotation_ = -1, value_rotation_ = -1;
  std::vector<Tensor> indices_;
};

}  // namespace

std::vector<ComputeGraph::Reserved> reserve_graph(const model::Model& model, const GraphPlan& plan) {
  Builder builder(model, plan);
  builder.whole();
  return builder.reserve();
}

}  // namespace gpuwright::fit
