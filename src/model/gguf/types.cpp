#include "model/gguf/types.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace gpuwright::model::gguf {
namespace {

// By ggml_type. 4 and 5 were Q4_2 and Q4_3, gone before GGUF; 31-33 and 36-38 are interleaved layouts, gone since.
constexpr std::array kTypes = {
    Dtype::f32,        Dtype::f16,        Dtype::q4_0,       Dtype::q4_1,     Dtype::unknown, Dtype::unknown,
    Dtype::q5_0,       Dtype::q5_1,       Dtype::q8_0,       Dtype::q8_1,     Dtype::q2_k,    Dtype::q3_k,
    Dtype::q4_k,       Dtype::q5_k,       Dtype::q6_k,       Dtype::q8_k,     Dtype::iq2_xxs, Dtype::iq2_xs,
    Dtype::iq3_xxs,    Dtype::iq1_s,      Dtype::iq4_nl,     Dtype::iq3_s,    Dtype::iq2_s,   Dtype::iq4_xs,
    Dtype::i8,         Dtype::i16,        Dtype::i32,        Dtype::i64,      Dtype::f64,     Dtype::iq1_m,
    Dtype::bf16,       Dtype::q4_0_4_4,   Dtype::q4_0_4_8,   Dtype::q4_0_8_8, Dtype::tq1_0,   Dtype::tq2_0,
    Dtype::iq4_nl_4_4, Dtype::iq4_nl_4_8, Dtype::iq4_nl_8_8, Dtype::mxfp4,    Dtype::nvfp4,   Dtype::q1_0,
    Dtype::q2_0,
};

constexpr std::array<std::string_view, 42> kFileTypes = {
    "F32",    "F16",    "Q4_0",   "Q4_1",     "Q4_1 (some F16)", "",         "",       "Q8_0",   "Q5_0",      "Q5_1",
    "Q2_K",   "Q3_K_S", "Q3_K_M", "Q3_K_L",   "Q4_K_S",          "Q4_K_M",   "Q5_K_S", "Q5_K_M", "Q6_K",      "IQ2_XXS",
    "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS",  "IQ1_S",           "IQ4_NL",   "IQ3_S",  "IQ3_M",  "IQ2_S",     "IQ2_M",
    "IQ4_XS", "IQ1_M",  "BF16",   "Q4_0_4_4", "Q4_0_4_8",        "Q4_0_8_8", "TQ1_0",  "TQ2_0",  "MXFP4_MOE", "NVFP4",
    "Q1_0",   "Q2_0",
};

}  // namespace

Dtype dtype_of(std::uint32_t ggml_type) {
  return ggml_type < kTypes.size() ? kTypes[ggml_type] : Dtype::unknown;
}

std::string type_name(std::uint32_t ggml_type) {
  const Dtype dtype = dtype_of(ggml_type);
  return dtype == Dtype::unknown ? fmt::format("type {}", ggml_type) : std::string(traits(dtype).name);
}

std::string file_type_name(std::int64_t file_type) {
  constexpr std::int64_t kGuessed = 1024;  // LLAMA_FTYPE_GUESSED
  const std::int64_t index = file_type & ~kGuessed;
  if (index < 0 || index >= static_cast<std::int64_t>(kFileTypes.size())) return {};
  return std::string(kFileTypes[static_cast<std::size_t>(index)]);
}

}  // namespace gpuwright::model::gguf
