// A model's tensors as a GGUF file would hold them: names mapped to llama.cpp's categories, experts of a layer stacked
// in one tensor, fused projections split or kept as convert_hf_to_gguf.py does.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace gpuwright::model {

// Of tensor_get_category in llama.cpp's src/llama-quant.cpp.
enum class GgufCategory : std::uint8_t {
  token_embedding,
  attention_q,
  attention_k,
  attention_v,
  attention_qkv,
  attention_kv_b,
  attention_output,
  ffn_up,
  ffn_gate,
  ffn_down,
  output,
  other,
};

struct GgufTensor {
  Tensor tensor;
  GgufCategory category = GgufCategory::other;
  bool quantizable = false;  // 2-D or 3-D ".weight" that llama-quant.cpp does not leave alone; the rest is F32
  bool stacked = false;      // three-dimensional
};

// In file order: outside the blocks first, then layer by layer. Tensors that the conversion drops are left out.
std::vector<GgufTensor> gguf_layout(const Model& model);

}  // namespace gpuwright::model
