// llama.cpp's file types and the storage type that each tensor gets under them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/quantize_gguf.h"

namespace gpuwright::model {

enum class FileType : std::uint8_t {
  f32,
  f16,
  bf16,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q2_k_s,
  q3_k_s,
  q3_k_m,
  q3_k_l,
  q4_k_s,
  q4_k_m,
  q5_k_s,
  q5_k_m,
  q6_k,
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq2_m,
  iq3_xxs,
  iq3_xs,
  iq3_s,
  iq3_m,
  iq4_nl,
  iq4_xs,
  tq1_0,
  tq2_0,
  mxfp4_moe,
};
// "Q4_K_M", "q4_k" (= Q4_K_M), "MXFP4_MOE"; case is ignored.
std::optional<FileType> file_type_named(std::string_view name);
std::string_view name_of(FileType type);
std::vector<std::string_view> file_type_names();
Dtype base_dtype(FileType type);

// The rules changed twice: experts got the layer rules when they were stacked in one tensor (2024; before, Mixtral's
// ffn_down experts kept the base type and routers were F16), and fused attn_qkv follows attn_v since the rules work by
// category (2026). ollama has a port of its own (server/quantization.go), and its published Qwen3 files keep attn_v
// F16.
enum class MixRules : std::uint8_t { y2023, y2024, by_category, ollama };

// Storage types of `layout`, in its order.
std::vector<Dtype> mixed_dtypes(const Model& model, const std::vector<GgufTensor>& layout, FileType type,
                                MixRules rules);

}  // namespace gpuwright::model
