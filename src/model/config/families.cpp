#include "model/config/families.h"

#include <algorithm>

#include "model/config/towers.h"

namespace gpuwright::model {
namespace {

std::vector<Family> make_families() {
  std::vector<Family> rows = {
      {.model_type = "llama", .family = "llama", .decoder = read_llama, .architecture = "LlamaForCausalLM"},
      {.model_type = "llama4_text", .family = "llama4", .decoder = read_llama4, .architecture = "Llama4ForCausalLM"},
      {.model_type = "mistral", .family = "mistral", .decoder = read_mistral, .architecture = "MistralForCausalLM"},
      {.model_type = "ministral", .family = "mistral", .decoder = read_mistral},
      {.model_type = "mixtral", .family = "mixtral", .decoder = read_mixtral, .architecture = "MixtralForCausalLM"},
      {.model_type = "qwen", .family = "qwen", .decoder = read_qwen1, .architecture = "QWenLMHeadModel"},
      {.model_type = "qwen2", .family = "qwen2", .decoder = read_qwen2, .architecture = "Qwen2ForCausalLM"},
      {.model_type = "qwen2_moe",
       .family = "qwen2moe",
       .decoder = read_qwen2_moe,
       .architecture = "Qwen2MoeForCausalLM"},
      {.model_type = "qwen3", .family = "qwen3", .decoder = read_qwen3, .architecture = "Qwen3ForCausalLM"},
      {.model_type = "qwen3_moe",
       .family = "qwen3moe",
       .decoder = read_qwen3_moe,
       .architecture = "Qwen3MoeForCausalLM"},
      {.model_type = "qwen3_next",
       .family = "qwen3next",
       .decoder = read_qwen3_next,
       .architecture = "Qwen3NextForCausalLM"},
      {.model_type = "qwen3_5_text", .family = "qwen35", .decoder = read_qwen3_5, .architecture = "Qwen3_5ForCausalLM"},
      {.model_type = "qwen3_5_moe_text",
       .family = "qwen35moe",
       .decoder = read_qwen3_5,
       .architecture = "Qwen3_5MoeForCausalLM"},
      {.model_type = "gemma", .family = "gemma", .decoder = read_gemma, .architecture = "GemmaForCausalLM"},
      {.model_type = "gemma2", .family = "gemma2", .decoder = read_gemma2, .architecture = "Gemma2ForCausalLM"},
      {.model_type = "gemma3_text", .family = "gemma3", .decoder = read_gemma3, .architecture = "Gemma3ForCausalLM"},
      {.model_type = "gemma3",
       .family = "gemma3",
       .decoder = read_gemma3,
       .towers = read_gemma3_vision,
       .architecture = "Gemma3ForConditionalGeneration"},
      {.model_type = "qwen3_5",
       .family = "qwen35",
       .decoder = read_qwen3_5,
       .architecture = "Qwen3_5ForConditionalGeneration"},
      {.model_type = "qwen3_5_moe",
       .family = "qwen35moe",
       .decoder = read_qwen3_5,
       .architecture = "Qwen3_5MoeForConditionalGeneration"},
      {.model_type = "llama4",
       .family = "llama4",
       .decoder = read_llama4,
       .architecture = "Llama4ForConditionalGeneration"},
  };
  std::sort(rows.begin(), rows.end(), [](const Family& a, const Family& b) { return a.model_type < b.model_type; });
  return rows;
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> rows = make_families();
  return rows;
}

const Family* family_of_type(std::string_view model_type) {
  const auto& rows = families();
  const auto row = std::lower_bound(rows.begin(), rows.end(), model_type,
                                    [](const Family& a, std::string_view type) { return a.model_type < type; });
  return row != rows.end() && row->model_type == model_type ? &*row : nullptr;
}

const Family* family_of_architecture(std::string_view architecture) {
  if (architecture.empty()) return nullptr;
  for (const Family& row : families())
    if (row.architecture == architecture) return &row;
  return nullptr;
}

}  // namespace gpuwright::model
