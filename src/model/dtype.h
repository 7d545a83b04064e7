// How numbers are stored. Every format, plain or block-quantised, is described by one pair: a block of so many
// elements takes so many bytes. Source of the ggml rows: ggml.c type traits (ggml-org/llama.cpp); of the others, the
// format's own definition, cited in dtype.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace gpuwright::model {

enum class Dtype : std::uint8_t {
  // Plain
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f6,
  f4,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  complex64,
  i4,
  // ggml blocks
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q8_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  q8_k,
  iq2_xxs,
  iq2_xs,
  iq3_xxs,
  iq1_s,
  iq4_nl,
  iq3_s,
  iq2_s,
  iq4_xs,
  iq1_m,
  tq1_0,
  tq2_0,
  mxfp4,
  nvfp4,
  q1_0,
  q2_0,
  q4_0_4_4,
  q4_0_4_8,
  q4_0_8_8,
  iq4_nl_4_4,
  iq4_nl_4_8,
  iq4_nl_8_8,
  // Weights as engines hold them after loading
  bnb_nf4,
  bnb_nf4_dq,  // 4 bit + fp32 absmax per 64; double-quantised absmax (QLoRA, arXiv 2305.14314)
  // A format that is not known: the bytes come from the tensor's extent in the file.
  unknown,
};

struct DtypeTraits {
  std::string_view name;        // as its own community writes it: "Q4_K", "BF16", "NF4"
  std::int64_t block_elements;  // 0 for unknown
  std::int64_t block_bytes;
};

const DtypeTraits& traits(Dtype dtype);
// Case is ignored: "q4_k", "BF16", "F8_E4M3", "float16".
std::optional<Dtype> dtype_named(std::string_view name);
double bits_per_weight(Dtype dtype);

// Bytes of `rows` rows of `columns` elements, each row padded to whole blocks. Nothing on overflow or for unknown.
std::optional<Bytes> storage_bytes(Dtype dtype, std::int64_t rows, std::int64_t columns);

}  // namespace gpuwright::model
