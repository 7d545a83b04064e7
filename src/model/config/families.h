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

}  // namespace gpuwright::model
