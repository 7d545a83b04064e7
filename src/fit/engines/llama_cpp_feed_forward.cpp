#include <algorithm>

#include "fit/engines/llama_cpp_blocks.h"

namespace gpuwright::fit {
namespace {

using Tensor = ComputeGraph::Tensor;
constexpr std::int64_t kFloat = 4, kInt = 4;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

class FeedForwardBuilder {
 public:
  FeedForwardBuilder(ComputeGraph& graph, const model::Model& model, const GraphPlan& plan)
      : graph_(graph), model_(model), plan_(plan) {}

  Tensor build(std::size_t il, Tensor input, std::int64_t rows) {
    fused_gate_up_ = has_fused_gate_up(il);
    const model::FeedForward& block = model_.layers[il].feed_forward;
    if (block.experts == 0) return dense(input, rows, block.width, block.gated);
    if (il < plan_.host_experts.size() && graph_.buffer() != ComputeGraph::kHost) offloaded_ = plan_.host_experts[il];
    Tensor out = experts(block, input, rows);
    if (block.shared_width > 0) {
      const Tensor shared = dense(input, rows, block.shared_width, block.gated);
      out = graph_.in_place("ffn_out", kFloat * rows * model_.hidden, {out, shared});
    }
    return out;
  }

 private:
  // Experts whose weights stay on the host still run on the GPU for batches of 32 and more: each matrix is copied into
  // the compute buffer for its one operation (op_offload in ggml-backend.cpp). Biases are added on the host.
  bool has_fused_gate_up(std::size_t il) const {
    return plan_.fused_gate_up && model_.layers[il].feed_forward.experts == 0;
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
    if (gated && fused_gate_up_) {
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

  ComputeGraph& graph_;
  const model::Model& model_;
  const GraphPlan& plan_;
  ExpertWeights offloaded_;  // zeros when the layer's experts are where it runs
  bool fused_gate_up_ = false;
};

}  // namespace

std::vector<ExpertWeights> expert_weights(const model::Model& model) {
  std::vector<ExpertWeights> layers(model.layers.size());
  for (const model::Tensor& tensor : model.tensors) {
    if (tensor.role != model::TensorRole::expert || tensor.layer < 0) continue;
    const auto il = static_cast<std::size_t>(tensor.layer);
    if (il >= layers.size()) continue;
    const bool bias = contains(tensor.name, "bias") || tensor.rows == 1;
    layers[il].biased |= bias;
    const bool down = contains(tensor.name, "down") || contains(tensor.name, ".w2");
    if (!bias) (down ? layers[il].down : layers[il].up) += tensor.bytes.count;
  }
  for (std::size_t il = 0; il < layers.size(); ++il)
    if (model.layers[il].feed_forward.gated) layers[il].up /= 2;
  return layers;
}

ComputeGraph::Tensor scaled_norm(ComputeGraph& graph, ComputeGraph::Tensor input, std::int64_t bytes,
                                 std::string_view name) {
  const ComputeGraph::Tensor normed = graph.in_place(name, bytes, {input});
  return graph.in_place(name, bytes, {normed});
}

ComputeGraph::Tensor feed_forward(ComputeGraph& graph, const model::Model& model, const GraphPlan& plan,
                                  std::size_t layer, ComputeGraph::Tensor input, std::int64_t rows) {
  return FeedForwardBuilder(graph, model, plan).build(layer, input, rows);
}

}  // namespace gpuwright::fit
