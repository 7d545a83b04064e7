// `quantization_config` of a Hugging Face config: which linear layers are stored how, and what travels beside them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "model/config/fields.h"
#include "model/dtype.h"

namespace gpuwright::model {

enum class QuantizationMethod : std::uint8_t {
  none,
  bnb_nf4,       // 4 bit + fp32 absmax per 64 weights
  bnb_nf4_dq,    // the same, absmax quantised again
  bnb_int8,      // 1 byte + fp32 per output row
  grouped_int,   // GPTQ, AWQ, compressed-tensors pack-quantized: `bits` + a 16-bit scale (and zero point) per group
  int8_channel,  // 1 byte + one scale per output row
  fp8_tensor,    // 1 byte + one fp32 scale
  fp8_channel,   // 1 byte + one scale per output row
  fp8_block,     // 1 byte + fp32 scale per block_rows x block_columns
  mxfp4,         // 4 bit + 1 byte per 32
  nvfp4,         // 4 bit + 1 byte (E4M3) per 16 + one fp32 a tensor
};

// Modules named by the lists of quantisation schemes: by path or part of a path ("lm_head", "mlp.gate",
// "model.layers.3.mlp"), by shell pattern ("model.layers.*.self_attn*") or by simple regular expression
// ("re:.*mlp.gate$"). Looking up costs the same however long the list is.
class ModuleSet {
 public:
  void add(std::string_view pattern);
  bool contains(std::string_view module) const;
  bool empty() const { return exact_.empty() && globs_.empty(); }

 private:
  std::unordered_set<std::string> exact_;
  std::vector<std::string> globs_;
};

struct Quantization {
  QuantizationMethod method = QuantizationMethod::none;
  std::int64_t bits = 0;
  std::int64_t group_size = 0;  // of grouped_int; 0: one group a row
  bool zero_points = false;     // one value of `bits` a group
  bool group_index = false;     // GPTQ: int32 a input column
  std::int64_t block_rows = 0, block_columns = 0;
  bool scales_are_half = true;  // grouped_int, *_channel: 2 bytes a scale, else 4
  bool input_scale = false;     // static activation scale, 4 bytes a linear
  bool experts_only = false;    // gpt-oss: only the routed experts
  bool head_too = false;        // the output head is quantised like the rest
  bool towers_too = false;      // vision towers are quantised like the rest (bitsandbytes)
  ModuleSet skipped;            // modules kept in the model's own dtype
  std::string label;            // "gptq-int4-g128": Model::weight_format

  bool skips(std::string_view module) const { return skipped.contains(module); }
};

// From `quantization_config` (or `compression_config`) of the config; method none when there is none. An unknown
// scheme is refused in the reading.
Quantization quantization_of(const Fields& config);

}  // namespace gpuwright::model
