// The same model in another weight format: what its tensors would take as Q4_K_M, NF4, FP8, GPTQ...
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/model.h"

namespace gpuwright::model {

// Formats: fp32 fp16 bf16 fp8 fp8-block bnb-int8 bnb-nf4 bnb-nf4-dq gptq-int4[-gN] gptq-int8 awq-int4[-gN] mxfp4 nvfp4,
// and llama.cpp file types (Q4_0 ... Q8_0, Q2_K ... Q6_K, IQ*, TQ*, F16, BF16, F32, MXFP4_MOE), whose tensor mix
// follows llama-quant.cpp. A file type may name the llama.cpp that wrote the file, as its mix depends on it:
// "Q4_K_M@b4477", "Q4_K_M@2023" (the rules before experts were stacked), "Q4_K_M@ollama" (its own port of the rules).
// Case is ignored. A bare "MXFP4" is MXFP4_MOE when written in capitals, the checkpoint format otherwise. Only a model
// in a plain format (F32, F16, BF16) can be converted; others give unsupported, unless the format is the one it already
// has.
Result<Model> with_weight_format(const Model& model, std::string_view format);
std::vector<std::string> weight_formats();

}  // namespace gpuwright::model
