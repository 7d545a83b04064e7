#include <algorithm>

#include "fit/engines/llama_cpp_blocks.h"

namespace gpuwright::fit {
namespace {

using model::RecurrentKind;
using Tensor = ComputeGraph::Tensor;
constexpr std::int64_t kFloat = 4;
constexpr std::int64_t kDeltaChunk = 64;  // tokens of one chunk of the gated delta net

class RecurrentBuilder {
 public:
  RecurrentBuilder(ComputeGraph& graph, const model::Model& model, const GraphPlan& plan, Tensor state_ids)
      : graph_(graph), model_(model), plan_(plan), state_ids_(state_ids) {}

  Tensor recurrent(const model::Recurrent& shape, Tensor input) {
    if (shape.kind == RecurrentKind::gated_delta_net) return delta_net(shape, input);
    if (shape.kind == RecurrentKind::rwkv) return rwkv(shape, input);
    return state_space(shape, input);
  }

 private:
  std::int64_t width(std::int64_t elements) const { return kFloat * plan_.tokens * elements; }

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
    const Tensor normed = scaled_norm(graph_, out, width(values), "attn_out_norm");
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

  ComputeGraph& graph_;
  const model::Model& model_;
  const GraphPlan& plan_;
  Tensor state_ids_;
};

}  // namespace

ComputeGraph::Tensor recurrent_block(ComputeGraph& graph, const model::Model& model, const GraphPlan& plan,
                                     const model::Recurrent& shape, ComputeGraph::Tensor input,
                                     ComputeGraph::Tensor state_ids) {
  return RecurrentBuilder(graph, model, plan, state_ids).recurrent(shape, input);
}

}  // namespace gpuwright::fit
