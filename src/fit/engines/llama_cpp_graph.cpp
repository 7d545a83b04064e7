#include "fit/engines/llama_cpp_graph.h"

#include <algorithm>
#include <string_view>

namespace gpuwright::fit {
namespace {

using model::AttentionKind;
using model::RecurrentKind;
using Tensor = ComputeGraph::Tensor;
constexpr std::int64_t kFloat = 4, kHalf = 2, kInt = 4, kIndex = 8;
constexpr std::int64_t kDeltaChunk = 64;  // tokens of one chunk of the gated delta net

// What the tensors of the model say about its blocks.
struct Traits {
  bool fused_qkv = false;
  bool qk_norm = false;
  bool query_gate = false;  // q projection gives queries and a gate of the same size
  bool fused_gate_up = false;
  bool second_norm = false;  // a parallel block whose feed-forward part has a norm of its own (GPT-NeoX)
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Traits traits_of(const model::Model& model) {
  Traits traits;
  for (const model::Layer& layer : model.layers)
    if (layer.recurrent.kind == RecurrentKind::gated_delta_net) traits.query_gate = true;
  traits.second_norm = model.parallel_block && contains(model.family, "neox");
  for (const model::Tensor& tensor : model.tensors) {
    const bool attention = tensor.role == model::TensorRole::attention;
    if (attention &&
        (contains(tensor.name, "qkv") || contains(tensor.name, "query_key_value") || contains(tensor.name, "c_attn")))
      traits.fused_qkv = true;
    if (contains(tensor.name, "q_norm") || contains(tensor.name, "q_layernorm")) traits.qk_norm = true;
    if (tensor.role == model::TensorRole::feed_forward && contains(tensor.name, "gate_up_proj"))
      traits.fused_gate_up = true;
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
    return graph_.input(name, element * cells * padded_rows());
  }

  // Before set_rows (July 2025) the rows of the mask were padded to 64.
  std::int64_t padded_rows() const { return plan_.tokens; }

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
      converted = graph_.op("KQ_mask f16", kHalf * cells * padded_rows(), {full});
    }
    return converted;
  }

  // ------------------------------------------------------------ one block

  Tensor norm(Tensor input, std::int64_t bytes, std::string_view name) {
    const Tensor normed = graph_.in_place(name, bytes, {input});
    return graph_.in_place(name, bytes, {normed});
  }

  Tensor block(std::size_t il, Tensor input, bool last) {
    const model::Layer& layer = model_.layers[il];
    const Tensor normed = norm(input, width(model_.hidden), "attn_norm");
    Tensor mixed = ComputeGraph::none();
    if (layer.recurrent.kind != RecurrentKind::none) mixed = recurrent(layer.recurrent, normed);
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
      const Tensor ffn = feed_forward(il, parallel_input, rows);
      const Tensor sum = graph_.in_place("ffn_out", bytes, {ffn, mixed});
      return graph_.in_place("l_out", bytes, {sum, residual});
    }
    const Tensor ffn_input = graph_.in_place("ffn_inp", bytes, {mixed, residual});
    const Tensor normed = norm(ffn_input, bytes, "ffn_norm");
    const Tensor ffn = feed_forward(il, normed, rows);
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
    Tensor attended = attend(attention.heads, q_bytes, out_bytes, parts.query, sliding);
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

  Tensor attend(std::int64_t heads, std::int64_t q_bytes, std::int64_t out_bytes, Tensor query, bool sliding) {
    (void)q_bytes;
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
    const std::int64_t nope = attention.key_dim - rope;
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
    (void)nope;
    const Tensor query = graph_.op("Qcur", width(heads * (rank + rope)), {absorbed, q_pe});
    const Tensor key = graph_.op("Kcur", width(rank + rope), {graph_.view(latent), k_pe});
    graph_.sink({key});
    const Tensor attended = attend(heads, width(heads * (rank + rope)), width(heads * rank), query, false);
    const Tensor values =
        graph_.view(graph_.op("kqv_mla", width(heads * attention.value_dim), {graph_.view(attended)}));
    const Tensor joined = graph_.op("kqv_out", width(heads * attention.value_dim), {values});
    return graph_.op("attn_out", width(model_.hidden), {joined});
  }

  // ------------------------------------------------------------ recurrent layers

  Tensor recurrent(const model::Recurrent& shape, Tensor input) {
    if (shape.kind == RecurrentKind::gated_delta_net) return delta_net(shape, input);
    if (shape.kind == RecurrentKind::rwkv) return rwkv(shape, input);
    return state_space(shape, input);
  }

  std::int64_t convolution_bytes(std::int64_t channels, std::int64_t d_conv) const {
    return kFloat * channels * (plan_.tokens + plan_.sequences * std::max<std::int64_t>(0, d_conv - 1));
  }

  Tensor gathered(std::string_view name, std::int64_t elements) {
    return graph_.op(name, kFloat * elements * plan_.sequences, {state_ids_});
  }

  Tensor delta_net(const model::Recurrent& shape, Tensor input) {
    const std::int64_t keys = shape.key_heads * shape.key_dim, values = shape.value_heads * shape.value_dim;
    const std::int64_t channels = 2 * keys + values;
    const Tensor mixed = graph_.view(graph_.op("qkv_mixed", width(channels), {input}));
    const Tensor z = graph_.view(graph_.op("z", width(values), {input}));
    const std::int64_t small = width(shape.value_heads);
    const Tensor beta = graph_.view(graph_.in_place("beta", small, {graph_.op("beta", small, {input})}));
    const Tensor alpha = graph_.op("alpha", small, {input});
    const Tensor gate = graph_.view(graph_.in_place("gate", small, {alpha}));

    const Tensor tail = graph_.view(gathered("conv_states", shape.convolution_elements()));
    const Tensor joined =
        graph_.op("conv_input", convolution_bytes(channels, shape.d_conv), {tail, graph_.view(mixed)});
    graph_.sink({graph_.view(joined)});
    const Tensor state = graph_.view(gathered("state", shape.state_elements()));
    const Tensor raw = graph_.op("conv_output", width(channels), {joined});
    const Tensor convolved = graph_.in_place("conv_output_silu", width(channels), {raw});
    Tensor q = graph_.op("q_conv", width(keys), {graph_.view(convolved)});
    Tensor k = graph_.op("k_conv", width(keys), {graph_.view(convolved)});
    const Tensor v = graph_.view(convolved);
    if (shape.key_heads != shape.value_heads && !plan_.fused_delta_net) {
      q = graph_.view(graph_.op("q_repeated", width(values), {graph_.view(q)}));
      k = graph_.view(graph_.op("k_repeated", width(values), {graph_.view(k)}));
    }
    const Tensor out = plan_.fused_delta_net ? fused_delta(shape, q, k, v, gate, beta, state)
                                             : chunked_delta(shape, q, k, v, gate, beta, state);
    const Tensor normed = norm(out, width(values), "attn_out_norm");
    const Tensor open = graph_.op("z_silu", width(values), {z});
    const Tensor gated = graph_.in_place("final_output", width(values), {normed, open});
    return graph_.view(graph_.op("linear_attn_out", width(model_.hidden), {graph_.view(gated)}));
  }

  Tensor fused_delta(const model::Recurrent& shape, Tensor q, Tensor k, Tensor v, Tensor gate, Tensor beta,
                     Tensor state) {
    const std::int64_t states = kFloat * shape.state_elements() * plan_.sequences * plan_.state_snapshots;
    const Tensor result =
        graph_.op("gated_delta_net", width(shape.value_heads * shape.value_dim) + states, {q, k, v, gate, beta, state});
    const Tensor output = graph_.view(result);
    graph_.sink({graph_.view(result)});
    return output;
  }

  // llm_build_delta_net_base::build_delta_net_chunking, in its order.
  Tensor chunked_delta(const model::Recurrent& shape, Tensor q, Tensor k, Tensor v, Tensor gate, Tensor beta,
                       Tensor state) {
    const std::int64_t per_sequence = divide_up(plan_.tokens, plan_.sequences);
    const std::int64_t chunks = divide_up(per_sequence, kDeltaChunk) * plan_.sequences;
    const std::int64_t heads = shape.value_heads;
    const std::int64_t wide = kFloat * chunks * kDeltaChunk * heads * shape.value_dim;
    const std::int64_t square = kFloat * chunks * kDeltaChunk * kDeltaChunk * heads;
    const std::int64_t thin = kFloat * chunks * kDeltaChunk * heads;
    const Tensor scaled = graph_.in_place("q_in", wide, {q});
    const Tensor qp = graph_.op("q_pad", wide, {graph_.view(scaled)});
    const Tensor kp = graph_.op("k_pad", wide, {graph_.view(k)});
    const Tensor vp = graph_.op("v_pad", wide, {graph_.view(v)});
    const Tensor gp = graph_.op("g_pad", thin, {graph_.view(gate)});
    const Tensor bp = graph_.op("b_pad", thin, {graph_.view(beta)});
    const Tensor v_b = graph_.view(graph_.in_place("v_b", wide, {vp, bp}));
    const Tensor k_b = graph_.view(graph_.op("k_b", wide, {kp, bp}));
    const Tensor g_cs = graph_.op("g_cs", thin, {graph_.op("g_t", thin, {graph_.view(gp)})});
    const Tensor decay_rows = graph_.op("g_cs_j", square, {graph_.view(g_cs)});
    Tensor decay = graph_.in_place("decay_mask", square, {decay_rows, g_cs});
    decay = graph_.op("decay_tri", square, {decay});
    decay = graph_.in_place("decay_exp", square, {decay});
    const Tensor kb = graph_.in_place("kb", square, {graph_.op("kb", square, {kp, k_b}), decay});
    const Tensor kq = graph_.in_place("kq", square, {graph_.op("kq", square, {kp, qp}), decay});
    const Tensor kq_tri = graph_.op("kq_tri", square, {kq});
    const Tensor attn = graph_.op("attn", square, {kb});
    const Tensor lhs = graph_.op("lhs", square, {attn});
    const Tensor negative = graph_.in_place("attn_neg", square, {attn});
    const Tensor solved = graph_.in_place("attn_solved", square, {graph_.op("solve", square, {lhs, negative})});
    const Tensor v_t = graph_.op("v_b_t", wide, {graph_.view(v_b)});
    const Tensor values = graph_.op("v_new", wide, {v_t, solved});
    const Tensor g_exp = graph_.op("g_exp", thin, {g_cs});
    const Tensor k_b_t = graph_.op("k_b_t", wide, {graph_.view(k_b)});
    const Tensor kbg = graph_.in_place("kbg", wide, {k_b_t, g_exp});
    const Tensor k_cd = graph_.op("k_cumdecay", wide, {kbg, solved});
    const Tensor q_g_exp = graph_.in_place("q_g_exp", wide, {qp, graph_.op("g_exp_t", thin, {graph_.view(g_exp)})});
    const Tensor kg = graph_.in_place("key_gdiff", wide, {kp, graph_.op("g_diff", thin, {g_cs})});
    const Tensor kg_t = graph_.op("key_gdiff_t", wide, {graph_.view(kg)});
    const Tensor values_t = graph_.op("v_t", wide, {graph_.view(values)});
    const std::int64_t states = kFloat * shape.state_elements() * plan_.sequences;
    const std::int64_t chunk = wide / std::max<std::int64_t>(1, chunks / plan_.sequences);
    const Tensor v_prime = graph_.op("v_prime", chunk, {graph_.view(k_cd), state});
    const Tensor v_chunk = graph_.op("v_t_new", chunk, {graph_.view(values_t), v_prime});
    const Tensor inter = graph_.op("attn_inter", chunk, {state, graph_.view(q_g_exp)});
    const Tensor v_attn = graph_.op("v_attn", chunk, {v_chunk, graph_.view(kq_tri)});
    const Tensor o_ch = graph_.in_place("o_ch", chunk, {inter, v_attn});
    const Tensor kgv = graph_.op("kgv", states, {graph_.view(kg_t), v_chunk});
    const Tensor decayed = graph_.op("state_decayed", states, {state});
    const Tensor next = graph_.in_place("state", states, {decayed, kgv});
    graph_.sink({graph_.view(next)});
    graph_.sink({o_ch});
    return graph_.view(values);
  }

  Tensor state_space(const model::Recurrent& shape, Tensor input) {
    const bool short_only = shape.kind == RecurrentKind::short_convolution;
    const std::int64_t inner = short_only ? model_.hidden : shape.d_inner;
    const std::int64_t channels = short_only ? inner : inner + 2 * shape.n_group * shape.d_state;
    const std::int64_t projected = short_only ? 3 * inner : inner + channels + shape.heads;
    const Tensor zxbcdt = graph_.op("ssm_in", width(projected), {input});
    const Tensor tail = graph_.view(gathered("conv_states", shape.convolution_elements()));
    const Tensor joined = graph_.op("conv_x", convolution_bytes(channels, shape.d_conv), {tail, graph_.view(zxbcdt)});
    graph_.sink({graph_.view(joined)});
    const Tensor convolved = graph_.op("conv_out", width(channels), {joined});
    Tensor current = convolved;
    if (!short_only) {
      const Tensor state = gathered("ssm_states", shape.state_elements());
      const Tensor scanned =
          graph_.op("ssm_scan", width(inner) + kFloat * shape.state_elements() * plan_.sequences, {convolved, state});
      graph_.sink({graph_.view(scanned)});
      current = graph_.op("y", width(inner), {graph_.view(scanned), graph_.view(convolved)});
    }
    const Tensor gated = graph_.op("gated", width(inner), {graph_.view(zxbcdt), current});
    return graph_.op("ssm_out", width(model_.hidden), {gated});
  }

  Tensor rwkv(const model::Recurrent& shape, Tensor input) {
    const Tensor shifted = graph_.op("x_prev", width(model_.hidden), {input, state_ids_});
    const Tensor lerped = graph_.op("xxx", width(6 * model_.hidden), {input, shifted});
    const Tensor state = gathered("wkv_states", shape.state_elements());
    const Tensor r = graph_.op("r", width(model_.hidden), {graph_.view(lerped)});
    const Tensor k = graph_.op("k", width(model_.hidden), {graph_.view(lerped)});
    const Tensor v = graph_.op("v", width(model_.hidden), {graph_.view(lerped)});
    const Tensor wkv =
        graph_.op("wkv", width(model_.hidden) + kFloat * shape.state_elements() * plan_.sequences, {r, k, v, state});
    graph_.sink({graph_.view(wkv)});
    return graph_.op("time_mix_out", width(model_.hidden), {graph_.view(wkv)});
  }

  // ------------------------------------------------------------ feed-forward

  Tensor feed_forward(std::size_t il, Tensor input, std::int64_t rows) {
    const model::FeedForward& block = model_.layers[il].feed_forward;
    if (block.experts == 0) return dense(input, rows, block.width, block.gated);
    offloaded_ = plan_.experts_on_host && plan_.experts_on_host(il) && graph_.buffer() != ComputeGraph::kHost
                     ? expert_weights_of(il)
                     : ExpertWeights{};
    Tensor out = experts(block, input, rows);
    if (block.shared_width > 0) {
      const Tensor shared = dense(input, rows, block.shared_width, block.gated);
      out = graph_.in_place("ffn_out", kFloat * rows * model_.hidden, {out, shared});
    }
    return out;
  }

  // Experts whose weights stay on the host still run on the GPU for batches of 32 and more: each matrix is copied into
  // the compute buffer for its one operation (op_offload in ggml-backend.cpp). Biases are added on the host.
  struct ExpertWeights {
    std::int64_t up = 0, down = 0;
    bool biased = false;
  };

  ExpertWeights expert_weights_of(std::size_t il) const {
    ExpertWeights found;
    std::int64_t up_and_gate = 0;
    for (const model::Tensor& tensor : model_.tensors) {
      if (tensor.role != model::TensorRole::expert || tensor.layer != static_cast<std::int32_t>(il)) continue;
      const bool bias = contains(tensor.name, "bias") || tensor.rows == 1;
      found.biased |= bias;
      if (bias) continue;
      const bool down = contains(tensor.name, "down") || contains(tensor.name, ".w2");
      (down ? found.down : up_and_gate) += tensor.bytes.count;
    }
    found.up = model_.layers[il].feed_forward.gated ? up_and_gate / 2 : up_and_gate;
    return found;
  }

  // One matrix of the experts applied to the tokens.
  Tensor expert_matrix(std::string_view name, std::int64_t bytes, Tensor tokens, Tensor chosen, std::int64_t weights) {
    constexpr std::int64_t kOffloadBatch = 32;
    if (weights == 0 || plan_.tokens < kOffloadBatch) return graph_.op(name, bytes, {tokens, chosen});
    const Tensor copied = graph_.op("copy of expert weights", weights, {});
    const Tensor product = graph_.op(name, bytes, {copied, tokens, chosen});
    if (!offloaded_.biased) return product;
    const int home = graph_.buffer();
    graph_.on(ComputeGraph::kHost);
    const Tensor biased = graph_.in_place(name, bytes, {product});
    graph_.on(home);
    return biased;
  }

  Tensor activated(Tensor gate, Tensor up, std::int64_t bytes) {
    if (up == ComputeGraph::none()) return graph_.in_place("ffn_act", bytes, {gate});
    if (plan_.fused_glu) return graph_.op("ffn_glu", bytes, {gate, up});
    const Tensor silu = graph_.in_place("ffn_silu", bytes, {gate});
    return graph_.in_place("ffn_gate_par", bytes, {silu, up});
  }

  Tensor dense(Tensor input, std::int64_t rows, std::int64_t inner, bool gated) {
    const std::int64_t bytes = kFloat * rows * inner;
    Tensor act = ComputeGraph::none();
    if (gated && traits_.fused_gate_up) {
      act = graph_.op("ffn_swiglu", bytes, {graph_.op("ffn_up", 2 * bytes, {input})});
    } else {
      const Tensor gate = graph_.op(gated ? "ffn_gate" : "ffn_up", bytes, {input});
      act = activated(gate, gated ? graph_.op("ffn_up", bytes, {input}) : ComputeGraph::none(), bytes);
    }
    return graph_.op("ffn_down", kFloat * rows * model_.hidden, {act});
  }

  Tensor experts(const model::FeedForward& block, Tensor input, std::int64_t rows) {
    const std::int64_t used = block.experts_per_token;
    const std::int64_t logits_bytes = kFloat * rows * block.experts;
    const Tensor logits = graph_.op("ffn_moe_logits", logits_bytes, {input});
    const Tensor probs = graph_.in_place("ffn_moe_probs", logits_bytes, {logits});
    const Tensor sorted = graph_.op("ffn_moe_argsort", kInt * rows * block.experts, {probs});
    const Tensor chosen = graph_.view(sorted);
    const Tensor weights = graph_.op("ffn_moe_weights", kFloat * rows * used, {graph_.view(probs), chosen});
    const std::int64_t inner = kFloat * rows * used * block.expert_width;
    const Tensor tokens = graph_.view(input);
    Tensor act = ComputeGraph::none();
    if (block.gated) {
      const Tensor gate = expert_matrix("ffn_moe_gate", inner, tokens, chosen, offloaded_.up);
      act = activated(gate, expert_matrix("ffn_moe_up", inner, tokens, chosen, offloaded_.up), inner);
    } else {
      act = activated(expert_matrix("ffn_moe_up", inner, tokens, chosen, offloaded_.up), ComputeGraph::none(), inner);
    }
    const std::int64_t out_bytes = kFloat * rows * used * model_.hidden;
    const Tensor down = expert_matrix("ffn_moe_down", out_bytes, act, chosen, offloaded_.down);
    const Tensor weighted = graph_.in_place("ffn_moe_weighted", out_bytes, {down, weights});
    return sum_of_experts(weighted, used, kFloat * rows * model_.hidden);
  }

  Tensor sum_of_experts(Tensor weighted, std::int64_t used, std::int64_t bytes) {
    std::vector<Tensor> views;
    for (std::int64_t i = 0; i < std::max<std::int64_t>(1, used); ++i) views.push_back(graph_.view(weighted));
    if (views.size() == 1) return graph_.op("ffn_moe_out", bytes, {views.front()});
    Tensor sum = graph_.in_place("ffn_moe_out", bytes, {views[0], views[1]});
    for (std::size_t i = 2; i < views.size(); ++i) sum = graph_.in_place("ffn_moe_out", bytes, {sum, views[i]});
    return sum;
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
  ExpertWeights offloaded_;  // of the layer being built; zeros when its experts are where it runs
};

}  // namespace

std::vector<ComputeGraph::Reserved> reserve_graph(const model::Model& model, const GraphPlan& plan) {
  Builder builder(model, plan);
  builder.whole();
  return builder.reserve();
}

}  // namespace gpuwright::fit
