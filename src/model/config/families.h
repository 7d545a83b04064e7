// The registry of families: what a model_type means, and who describes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/config/decoder.h"
#include "model/config/fields.h"
#include "model/config/plan.h"
#include "model/model.h"

namespace gpuwright::model {

// Describes the decoder of a text model. Reads the text_config of a nested config.
using DecoderReader = Decoder (*)(const Fields& text);
// Lays out what stands beside the decoder: vision and audio towers, projectors. Reads the whole config.
using TowerReader = void (*)(const Fields& config, Plan& plan, Model& model);
// Models that are no decoder at all fill in everything themselves.
using ModelReader = void (*)(const Fields& config, Plan& plan, Model& model);

struct Family {
  std::string_view model_type;
  std::string_view family;  // Model::family; empty: that of the nested text model
  DecoderReader decoder = nullptr;
  TowerReader towers = nullptr;
  ModelReader whole = nullptr;
  // For configs that name only an architecture; "" when it does not name the family.
  std::string_view architecture = {};
};

const std::vector<Family>& families();
const Family* family_of_type(std::string_view model_type);
const Family* family_of_architecture(std::string_view architecture);

// The readers, by file. llama.cpp
Decoder read_llama(const Fields&);
Decoder read_llama4(const Fields&);
Decoder read_mllama(const Fields&);
// mistral.cpp
Decoder read_mistral(const Fields&);
Decoder read_mixtral(const Fields&);
// qwen.cpp
Decoder read_qwen1(const Fields&);
Decoder read_qwen2(const Fields&);
Decoder read_qwen2_moe(const Fields&);
Decoder read_qwen3(const Fields&);
Decoder read_qwen3_moe(const Fields&);
Decoder read_qwen3_next(const Fields&);
Decoder read_qwen3_5(const Fields&);
// gemma.cpp
Decoder read_gemma(const Fields&);
Decoder read_gemma2(const Fields&);
Decoder read_gemma3(const Fields&);
// gemma_nano.cpp
Decoder read_gemma3n(const Fields&);
Decoder read_gemma4(const Fields&);
Decoder read_gemma4_unified(const Fields&);
// gpt.cpp
Decoder read_gpt2(const Fields&);
Decoder read_gpt_bigcode(const Fields&);
Decoder read_gptj(const Fields&);
Decoder read_gpt_neox(const Fields&);
Decoder read_bloom(const Fields&);
Decoder read_mpt(const Fields&);
Decoder read_opt(const Fields&);
Decoder read_falcon(const Fields&);
Decoder read_starcoder2(const Fields&);
Decoder read_phi(const Fields&);
Decoder read_stablelm(const Fields&);
// kin.cpp
Decoder read_phi3(const Fields&);
Decoder read_cohere(const Fields&);
Decoder read_cohere2(const Fields&);
Decoder read_olmo(const Fields&);
Decoder read_olmo2(const Fields&);
Decoder read_olmo3(const Fields&);
Decoder read_nemotron(const Fields&);
Decoder read_glm(const Fields&);
Decoder read_glm4(const Fields&);
Decoder read_chatglm(const Fields&);
Decoder read_internlm(const Fields&);
Decoder read_internlm2(const Fields&);
Decoder read_internlm3(const Fields&);
Decoder read_baichuan(const Fields&);
Decoder read_minicpm(const Fields&);
Decoder read_smollm3(const Fields&);
Decoder read_exaone(const Fields&);
Decoder read_exaone4(const Fields&);
Decoder read_seed_oss(const Fields&);
Decoder read_hunyuan(const Fields&);
Decoder read_ernie(const Fields&);
// experts.cpp
Decoder read_phimoe(const Fields&);
Decoder read_gpt_oss(const Fields&);
Decoder read_olmoe(const Fields&);
Decoder read_granite_moe(const Fields&);
Decoder read_glm4_moe(const Fields&);
Decoder read_minimax_m2(const Fields&);
Decoder read_minimax(const Fields&);
Decoder read_ernie_moe(const Fields&);
Decoder read_hunyuan_moe(const Fields&);
// deepseek.cpp
Decoder read_deepseek_moe(const Fields&);
Decoder read_deepseek_v2(const Fields&);
Decoder read_deepseek_v3(const Fields&);
Decoder read_deepseek_v32(const Fields&);
Decoder read_minicpm3(const Fields&);
// hybrids.cpp
Decoder read_mamba(const Fields&);
Decoder read_mamba2(const Fields&);
Decoder read_jamba(const Fields&);
Decoder read_bamba(const Fields&);
Decoder read_falcon_h1(const Fields&);
Decoder read_granite_hybrid(const Fields&);
Decoder read_nemotron_h(const Fields&);
Decoder read_lfm2(const Fields&);
Decoder read_lfm2_moe(const Fields&);
Decoder read_rwkv(const Fields&);

}  // namespace gpuwright::model
