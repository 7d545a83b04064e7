// llama.cpp's compute graph of one model, as far as its tensors take memory: src/llama-graph.cpp and src/models/*.cpp
// (ggml-org/llama.cpp, read at commit 00395eb2). The graph of the largest batch is what llama_context reserves:
// n_ubatch tokens that all give logits, against a full cache (llama_context::graph_reserve).
#pragma once

#include <cstdint>
#include <vector>

#include "fit/engines/llama_cpp_allocator.h"
#include "model/model.h"

namespace gpuwright::fit {

// Routed experts of one layer: bytes of one matrix of them all.
struct ExpertWeights {
  std::int64_t up = 0;  // and of the gate, which is as large
  std::int64_t down = 0;
  bool biased = false;
};
std::vector<ExpertWeights> expert_weights(const model::Model& model);

struct GraphPlan {
  std::int64_t tokens = 512;    // of the micro-batch
  std::int64_t outputs = 512;   // of them, how many give logits
  std::int64_t sequences = 1;   // in the micro-batch
  std::int64_t full_cells = 0;  // of cache that a full layer attends to, per stream
  std::int64_t swa_cells = 0;   // the same for sliding layers; 0 when there are none
  bool flash_attention = true;
  bool quantized_cache = false;

  // Where things run: buffers of ComputeGraph.
  std::vector<int> layer_buffer;  // of each layer
  int output_buffer = 1;
  std::vector<ExpertWeights> host_experts;  // of each layer; zeros where they are on the layer's GPU; may be empty
  bool cache_on_host = false;
  int devices = 1;
  int copies = 1;

  // What changed between versions.
  bool half_mask = false;       // the mask is built as f16 when flash attention is on
  bool fused_glu = true;        // gate and up go through one operation that overwrites neither
  bool both_embeddings = true;  // an input for ready-made embeddings is always there
  bool rotated_cache = true;    // quantised caches are rotated by a small Hadamard matrix
  bool fused_delta_net = true;
  bool old_qkv_copies = false;       // fused qkv is cut by copies, not by views
  bool fused_gate_up = false;        // of the model: one matrix gives gate and up (Phi-3)
  std::int64_t state_snapshots = 1;  // recurrent states kept for speculative rollback, and the live one
};

std::vector<ComputeGraph::Reserved> reserve_graph(const model::Model& model, const GraphPlan& plan);

}  // namespace gpuwright::fit
