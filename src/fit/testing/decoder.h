// Hand-built decoders for tests: the tensor plan of a Llama-shaped model from its published sizes.
#pragma once

#include <cstdint>
#include <string>

#include "fit/fit.h"
#include "model/model.h"

namespace gpuwright::fit::testing {

struct DecoderShape {
  std::string name, family = "llama";
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 128, ffn = 0, vocabulary = 0;
  std::int64_t context = 32768;
  bool tied = false, qkv_bias = false, qk_norm = false;
};
model::Model decoder(const DecoderShape& shape);

DecoderShape qwen25_7b();
DecoderShape qwen25_14b();
DecoderShape qwen25_32b();
DecoderShape qwen25_72b();
DecoderShape qwen25_1_5b();
DecoderShape qwen3_4b();
DecoderShape qwen3_8b();
DecoderShape llama31_8b();
DecoderShape llama2_7b();

Target card(std::string name, double gib, std::string architecture);

}  // namespace gpuwright::fit::testing
