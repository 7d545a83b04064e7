// Numbers that ggml and llama.cpp write into files, and what they mean. Sources: enum ggml_type in ggml/include/ggml.h,
// enum llama_ftype in include/llama.h and their names in llama_model_ftype_name (ggml-org/llama.cpp).
#pragma once

#include <cstdint>
#include <string>

#include "model/dtype.h"

namespace gpuwright::model::gguf {

// Dtype::unknown for numbers that ggml does not (or no longer) define, like those of its forks.
Dtype dtype_of(std::uint32_t ggml_type);
// "Q4_K", or "type 137" where the number has no name here.
std::string type_name(std::uint32_t ggml_type);
// general.file_type as people write it: "Q4_K_M". Empty when the number is not known.
std::string file_type_name(std::int64_t file_type);

}  // namespace gpuwright::model::gguf
