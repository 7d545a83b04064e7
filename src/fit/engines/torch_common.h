// What the engines built on PyTorch have in common: how its caching allocator rounds, which vectors of a decoder
// block are alive at once, how tensors are shared out over ranks, and ranges made from measured constants.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "fit/engine.h"

namespace gpuwright::fit {

// What memory_allocated counts for one tensor that got a segment of its own. PyTorch rounds to 512 B; a request of
// 10 MiB or more asks the driver for a multiple of 2 MiB and keeps a rest of at most 1 MiB unsplit.
// Source: c10/cuda/CUDACachingAllocator.cpp (round_size, get_allocation_size, should_split), v2.3.
Bytes allocated_block(Bytes size);

// Refuses token counts whose bytes would leave 63 bits; after it the engines multiply freely.
Status check_magnitude(const model::Model& model, std::int64_t tokens, std::int64_t sequences);

// vLLM (_get_and_verify_max_len, vllm/config/model.py) and SGLang (configs/model_config.py) refuse a context beyond the
// model's own unless a variable of the environment overrides it.
Status check_trained_context(const model::Model& model, const Job& job, std::string_view override_variable);

// Element size of hidden states: 4 for a model in F32, else 2.
std::int64_t activation_bytes(const model::Model& model);
// The cache's types: as the job says, else the activations' type.
model::Dtype cache_type(const std::optional<model::Dtype>& wanted, const model::Model& model);

Component ranged(ComponentKind kind, Meter meter, const Constant& bytes, std::string formula);
Component ranged(ComponentKind kind, Meter meter, double low, double expected, double high, std::string formula,
                 std::string source);

// Workspace that cuBLAS takes from PyTorch's allocator on first use.
Component cublas_workspace(std::string_view architecture);
// What the process holds outside PyTorch's allocator: CUDA context, kernels, libraries.
Result<Component> cuda_context(Engine engine, std::string_view version, std::string_view architecture);

// Elements a token that one block keeps alive at its worst moment while a prompt is processed, besides the cache: the
// maximum over its attention, its norms and its feed-forward part. Checked against the peaks that PyTorch's MemTracker
// gives for transformers 5.24 under FakeTensorMode (torch_common_test.cpp).
struct LiveWidth {
  double low = 0, expected = 0, high = 0;  // elements a token
  std::string formula;
};
struct BlockContext {
  std::int64_t hidden = 0;
  double ranks = 1;             // tensor parallelism
  double carried = 3;           // hidden-state vectors that callers hold: embeddings, block input, residual
  double gated_vectors = 3;     // inner vectors alive at once: act(gate), up, product; 4 when one matrix gives both
  double plain_vectors = 2;     // inner vector and its activation; 4 when GELU is written out in PyTorch operations
  bool grouped_experts = true;  // all experts in one kernel: every token is there once for each expert it chose
  bool fp32_norm = true;        // RMSNorm written out in PyTorch: fp32 copies; engines with a fused kernel have none
  bool expand_keys = false;     // keys and values are repeated for the query heads (sdpa with a mask, eager)
};
BlockContext block_context(const model::Model& model);
LiveWidth live_width(const model::Layer& layer, const BlockContext& context);

// Share of a rank under tensor parallelism, as Megatron-style layers split it.
Bytes tensor_parallel_share(const model::Model& model, const model::Tensor& tensor, std::int64_t ranks);

// Sum of one layer's or the whole model's tensors by role, for formulas.
Bytes bytes_of(const model::Model& model, model::TensorRole role);
// The largest matrix stored in fewer bits than that, as 16-bit elements: what a kernel writes out first.
Bytes largest_quantized_matrix(const model::Model& model, std::int64_t bits_per_weight);

}  // namespace gpuwright::fit
