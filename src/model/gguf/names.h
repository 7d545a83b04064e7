// Tensor names of GGUF files, taken apart: "blk.3.attn_q.weight". Source: TENSOR_NAMES in gguf-py/gguf/constants.py
// and LLM_TENSOR_NAMES in src/llama-arch.cpp (ggml-org/llama.cpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "model/weights_file.h"

namespace gpuwright::model::gguf {

enum class Stack : std::uint8_t {
  none,     // outside all blocks
  decoder,  // blk.N, dec.blk.N
  encoder,  // enc.blk.N
  vision,   // v.blk.N, a.blk.N, mm.*: towers and projectors
};

struct TensorName {
  Stack stack = Stack::none;
  std::int32_t block = -1;
  std::string_view part;    // "attn_q", "ffn_gate_inp"; the whole name outside the blocks, less the suffix
  std::string_view suffix;  // "weight", "bias", "scale"; may be empty
};

TensorName parse_name(std::string_view name);
TensorRole role_of(const TensorName& name);

}  // namespace gpuwright::model::gguf
