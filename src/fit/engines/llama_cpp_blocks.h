// Parts of llama.cpp's compute graph: recurrent layers and feed-forward blocks (llama_cpp_graph.h puts them together).
#pragma once

#include <cstdint>
#include <string_view>

#include "fit/engines/llama_cpp_graph.h"

namespace gpuwright::fit {

// A norm and the multiplication by its weight; both may overwrite their input.
ComputeGraph::Tensor scaled_norm(ComputeGraph& graph, ComputeGraph::Tensor input, std::int64_t bytes,
                                 std::string_view name);

// One recurrent layer from its normed input to its output projection: src/models/delta-net-base.cpp, qwen3next.cpp and
// graph-context-mamba.cpp. state_ids: the input that says which states belong to the sequences.
ComputeGraph::Tensor recurrent_block(ComputeGraph& graph, const model::Model& model, const GraphPlan& plan,
                                     const model::Recurrent& shape, ComputeGraph::Tensor input,
                                     ComputeGraph::Tensor state_ids);

// The feed-forward part of a layer, dense or mixture: build_ffn and build_moe_ffn of src/llama-graph.cpp.
ComputeGraph::Tensor feed_forward(ComputeGraph& graph, const model::Model& model, const GraphPlan& plan,
                                  std::size_t layer, ComputeGraph::Tensor input, std::int64_t rows);

}  // namespace gpuwright::fit
