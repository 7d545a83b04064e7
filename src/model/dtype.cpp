#include "model/dtype.h"

#include <array>

#include "base/text.h"

namespace gpuwright::model {
namespace {

// Order of the enum. ggml rows: type_traits in ggml/src/ggml.c and the block structs of ggml-common.h
// (ggml-org/llama.cpp); the removed interleaved 4-bit layouts kept Q4_0's and IQ4_NL's 32/18.
// F8/F6/F4: OCP Microscaling Formats v1.0. NF4: blocks of 64 with an fp32 absmax; double quantisation stores the
// absmax in 8 bits per block and one fp32 per 256 blocks (arXiv 2305.14314, section 3): 64*256 weights take
// 8192 + 256 + 4 bytes.
constexpr std::array kTraits = {
    DtypeTraits{"F64", 1, 8},          DtypeTraits{"F32", 1, 4},
    DtypeTraits{"F16", 1, 2},          DtypeTraits{"BF16", 1, 2},
    DtypeTraits{"F8_E4M3", 1, 1},      DtypeTraits{"F8_E5M2", 1, 1},
    DtypeTraits{"F8_E8M0", 1, 1},      DtypeTraits{"F6", 4, 3},
    DtypeTraits{"F4", 2, 1},           DtypeTraits{"I64", 1, 8},
    DtypeTraits{"I32", 1, 4},          DtypeTraits{"I16", 1, 2},
    DtypeTraits{"I8", 1, 1},           DtypeTraits{"U64", 1, 8},
    DtypeTraits{"U32", 1, 4},          DtypeTraits{"U16", 1, 2},
    DtypeTraits{"U8", 1, 1},           DtypeTraits{"BOOL", 1, 1},
    DtypeTraits{"C64", 1, 8},          DtypeTraits{"I4", 2, 1},

    DtypeTraits{"Q4_0", 32, 18},       DtypeTraits{"Q4_1", 32, 20},
    DtypeTraits{"Q5_0", 32, 22},       DtypeTraits{"Q5_1", 32, 24},
    DtypeTraits{"Q8_0", 32, 34},       DtypeTraits{"Q8_1", 32, 36},
    DtypeTraits{"Q2_K", 256, 84},      DtypeTraits{"Q3_K", 256, 110},
    DtypeTraits{"Q4_K", 256, 144},     DtypeTraits{"Q5_K", 256, 176},
    DtypeTraits{"Q6_K", 256, 210},     DtypeTraits{"Q8_K", 256, 292},
    DtypeTraits{"IQ2_XXS", 256, 66},   DtypeTraits{"IQ2_XS", 256, 74},
    DtypeTraits{"IQ3_XXS", 256, 98},   DtypeTraits{"IQ1_S", 256, 50},
    DtypeTraits{"IQ4_NL", 32, 18},     DtypeTraits{"IQ3_S", 256, 110},
    DtypeTraits{"IQ2_S", 256, 82},     DtypeTraits{"IQ4_XS", 256, 136},
    DtypeTraits{"IQ1_M", 256, 56},     DtypeTraits{"TQ1_0", 256, 54},
    DtypeTraits{"TQ2_0", 256, 66},     DtypeTraits{"MXFP4", 32, 17},
    DtypeTraits{"NVFP4", 64, 36},      DtypeTraits{"Q1_0", 128, 18},
    DtypeTraits{"Q2_0", 64, 18},       DtypeTraits{"Q4_0_4_4", 32, 18},
    DtypeTraits{"Q4_0_4_8", 32, 18},   DtypeTraits{"Q4_0_8_8", 32, 18},
    DtypeTraits{"IQ4_NL_4_4", 32, 18}, DtypeTraits{"IQ4_NL_4_8", 32, 18},
    DtypeTraits{"IQ4_NL_8_8", 32, 18},

    DtypeTraits{"NF4", 64, 36},        DtypeTraits{"NF4-DQ", 16384, 8452},
    DtypeTraits{"unknown", 0, 0},
};
static_assert(kTraits.size() == static_cast<std::size_t>(Dtype::unknown) + 1);

struct Alias {
  std::string_view name;
  Dtype dtype;
};
constexpr Alias kAliases[] = {
    {"float64", Dtype::f64},
    {"float32", Dtype::f32},
    {"float", Dtype::f32},
    {"fp32", Dtype::f32},
    {"float16", Dtype::f16},
    {"half", Dtype::f16},
    {"fp16", Dtype::f16},
    {"bfloat16", Dtype::bf16},
    {"fp8", Dtype::f8_e4m3},
    {"fp8_e4m3", Dtype::f8_e4m3},
    {"fp8_e5m2", Dtype::f8_e5m2},
    {"f8_e4m3fn", Dtype::f8_e4m3},
    {"float8_e4m3fn", Dtype::f8_e4m3},
    {"float8_e5m2", Dtype::f8_e5m2},
    {"int8", Dtype::i8},
    {"uint8", Dtype::u8},
    {"int32", Dtype::i32},
    {"int64", Dtype::i64},
    {"int16", Dtype::i16},
};

}  // namespace

const DtypeTraits& traits(Dtype dtype) {
  return kTraits[static_cast<std::size_t>(dtype)];
}

std::optional<Dtype> dtype_named(std::string_view name) {
  const std::string wanted = lower(name.substr(0, 32));
  for (std::size_t i = 0; i + 1 < kTraits.size(); ++i)
    if (lower(kTraits[i].name) == wanted) return static_cast<Dtype>(i);
  for (const Alias& alias : kAliases)
    if (alias.name == wanted) return alias.dtype;
  return std::nullopt;
}

double bits_per_weight(Dtype dtype) {
  const DtypeTraits& row = traits(dtype);
  return row.block_elements == 0 ? 0
                                 : 8.0 * static_cast<double>(row.block_bytes) / static_cast<double>(row.block_elements);
}

std::optional<Bytes> storage_bytes(Dtype dtype, std::int64_t rows, std::int64_t columns) {
  const DtypeTraits& row = traits(dtype);
  if (row.block_elements == 0 || rows < 0 || columns < 0) return std::nullopt;
  // Not divide_up: columns comes from files and may lie near the largest integer.
  const std::int64_t blocks = columns / row.block_elements + (columns % row.block_elements != 0 ? 1 : 0);
  const auto row_bytes = checked_multiply(blocks, row.block_bytes);
  const auto total = row_bytes ? checked_multiply(*row_bytes, rows) : std::nullopt;
  return total ? std::optional(Bytes{*total}) : std::nullopt;
}

}  // namespace gpuwright::model
