#include "fit/training/adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace gpuwright::fit::training {
namespace {

using model::Tensor;
using model::TensorRole;

bool is_block_linear(const Tensor& tensor) {
  if (tensor.rows <= 1 || tensor.columns <= 1 || tensor.layer < 0) return false;
  if (tensor.name.find("conv") != std::string::npos || tensor.name.find("A_log") != std::string::npos) return false;
  switch (tensor.role) {
    case TensorRole::attention:
    case TensorRole::attention_kv_a:
    case TensorRole::feed_forward:
    case TensorRole::expert:
    case TensorRole::shared_expert:
    case TensorRole::recurrent:
    case TensorRole::encoder:
      return !tensor.name.ends_with(".bias");
    default:
      return false;
  }
}

// "model.layers.0.self_attn.q_proj.weight" -> "q_proj"
std::string module_name(std::string_view tensor) {
  for (const std::string_view ending : {".weight", ".qweight", ".base_layer.weight"})
    if (tensor.ends_with(ending)) tensor.remove_suffix(ending.size());
  const std::size_t dot = tensor.rfind('.');
  return std::string(dot == std::string_view::npos ? tensor : tensor.substr(dot + 1));
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

Reads input_of(const Tensor& tensor, const model::Model& model) {
  const bool attention = tensor.role == TensorRole::attention || tensor.role == TensorRole::attention_kv_a ||
                         contains_any(tensor.name, {"attn", "attention"});
  const bool output = contains_any(
      tensor.name, {"o_proj", "out_proj", "c_proj", "attention.dense", "self_attn.dense", "self_attention.dense", "wo.",
                    "down_proj", "w2.", "fc2", "fc_out", "dense_4h_to_h", "attn_output", "ffn_down", "output.dense"});
  // Qwen-1's gate and up are w1 and w2, and its down projection is c_proj.
  const bool up_named_w2 = model.family == "qwen" && contains_any(tensor.name, {"mlp.w2."});
  if (attention) return output ? Reads::attention_output : Reads::attention_input;
  return output && !up_named_w2 ? Reads::feed_forward_output : Reads::feed_forward_input;
}

// litgpt names the parts of its fused qkv; other tools go by the names in the model's own code.
struct Alias {
  std::string_view target;
  std::array<std::string_view, 3> names;
};
constexpr std::array kAliases = {
    Alias{"query", {"q_proj", "query", "attn_q"}},
    Alias{"key", {"k_proj", "key", "attn_k"}},
    Alias{"value", {"v_proj", "value", "attn_v"}},
    Alias{"projection", {"o_proj", "dense", "attn_output"}},
    Alias{"q", {"q_proj", "q", "attn_q"}},
    Alias{"v", {"v_proj", "v", "attn_v"}},
    Alias{"head", {"lm_head", "embed_out", "output"}},
};
constexpr std::array<std::string_view, 6> kFused = {"c_attn", "qkv_proj", "query_key_value", "W_pack", "Wqkv", "wqkv"};

bool is_named(const Module& module, std::string_view target) {
  if (module.name == target) return true;
  const std::size_t dot = target.rfind('.');
  if (dot != std::string_view::npos && module.name == target.substr(dot + 1)) return true;
  for (const Alias& alias : kAliases)
    if (alias.target == target && std::find(alias.names.begin(), alias.names.end(), module.name) != alias.names.end())
      return true;
  return false;
}

bool is_fused(const Module& module) {
  return std::find(kFused.begin(), kFused.end(), module.name) != kFused.end();
}

bool is_part_of_qkv(std::string_view target) {
  return target == "query" || target == "key" || target == "value" || target == "q_proj" || target == "k_proj" ||
         target == "v_proj";
}

// An adapter on one part of a fused projection: only that part's outputs.
Module part_of(const Module& fused, std::string_view target, const model::Model& model) {
  const model::Attention& attention = model.layers[static_cast<std::size_t>(fused.layer)].attention;
  Module part = fused;
  part.name = std::string(target);
  if (target.front() == 'q') part.out = static_cast<double>(attention.heads * attention.key_dim);
  if (target.front() == 'k') part.out = static_cast<double>(attention.kv_heads * attention.key_dim);
  if (target.front() == 'v') part.out = static_cast<double>(attention.kv_heads * attention.value_dim);
  return part;
}

// Embeddings and heads are adapted only where they are named ("lm_head", "embed_tokens").
void add_tables_named(const model::Model& model, std::string_view target, std::vector<Module>& chosen) {
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role != TensorRole::token_embedding && tensor.role != TensorRole::output_head) continue;
    Module module;
    module.name = module_name(tensor.name);
    module.in = static_cast<double>(tensor.columns);
    module.out = static_cast<double>(tensor.rows);
    if (is_named(module, target)) chosen.push_back(std::move(module));
  }
}

bool has_linear(const std::vector<Module>& linears, std::string_view name) {
  return std::any_of(linears.begin(), linears.end(), [&](const Module& module) { return module.name == name; });
}

// Families of TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING in peft/utils/constants.py of PEFT 0.21.
bool peft_knows(std::string_view family) {
  constexpr std::array<std::string_view, 24> kKnown = {
      "llama",    "llama4", "mistral", "mixtral", "gemma", "gemma2", "gemma3",    "gemma4",
      "qwen2",    "qwen3",  "opt",     "gptj",    "phi2",  "gpt2",   "bloom",     "falcon",
      "stablelm", "mpt",    "gptneox", "chatglm", "bert",  "t5",     "starcoder", "nemotron-h"};
  return std::find(kKnown.begin(), kKnown.end(), family) != kKnown.end();
}

std::vector<std::string> peft_targets(const model::Model& model, const std::vector<Module>& linears) {
  if (model.family == "bert") return {"query", "value"};
  if (model.family == "t5") return {"q", "v"};
  if (model.family == "phi2") return {"q_proj", "v_proj", "fc1", "fc2"};
  if (model.family == "nemotron-h") return {"q_proj", "k_proj", "v_proj", "o_proj"};
  // Latent attention has no value projection: the query's, whole or in two factors, the latent's and the output.
  if (has_linear(linears, "kv_a_proj_with_mqa")) {
    std::vector<std::string> targets;
    for (const std::string_view name : {"q_proj", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"})
      if (has_linear(linears, name)) targets.emplace_back(name);
    return targets;
  }
  if (has_linear(linears, "q_proj") && has_linear(linears, "v_proj")) return {"q_proj", "v_proj"};
  for (const std::string_view fused : kFused)
    if (has_linear(linears, fused)) return {std::string(fused)};
  return {"all-linear"};
}

}  // namespace

std::vector<Module> linears_of(const model::Model& model) {
  std::vector<Module> modules;
  for (const Tensor& tensor : model.tensors) {
    if (!is_block_linear(tensor)) continue;
    Module module;
    module.name = module_name(tensor.name);
    module.layer = tensor.layer;
    module.out = static_cast<double>(tensor.rows);
    module.in = static_cast<double>(tensor.columns) * static_cast<double>(tensor.weights_per_element);
    if (tensor.name.ends_with(".qweight"))
      module.out = static_cast<double>(tensor.columns),
      module.in = static_cast<double>(tensor.rows) * static_cast<double>(tensor.weights_per_element);
    module.copies = static_cast<double>(tensor.copies);
    module.is_expert = tensor.role == TensorRole::expert;
    module.reads = input_of(tensor, model);
    modules.push_back(std::move(module));
  }
  return modules;
}

DefaultTargets default_targets(const model::Model& model, const TrainingJob& job) {
  const std::vector<Module> linears = linears_of(model);
  switch (job.engine) {
    case TrainingEngine::litgpt:
      return {{"query", "value"}, true};
    case TrainingEngine::unsloth:
    case TrainingEngine::gpuwright:
      return {{"all-linear"}, true};
    default:
      return {peft_targets(model, linears), peft_knows(model.family)};
  }
}

Result<std::vector<Module>> adapted_modules(const model::Model& model, const TrainingJob& job) {
  const std::vector<Module> all = linears_of(model);
  const std::vector<std::string> targets =
      job.lora.targets.empty() ? default_targets(model, job).names : job.lora.targets;
  std::vector<Module> chosen;
  for (const std::string& target : targets) {
    const std::size_t before = chosen.size();
    for (const Module& module : all) {
      if (target == "all-linear" || is_named(module, target))
        chosen.push_back(module);
      else if (is_fused(module) && is_part_of_qkv(target) && module.layer >= 0 &&
               static_cast<std::size_t>(module.layer) < model.layers.size())
        chosen.push_back(part_of(module, target, model));
    }
    add_tables_named(model, target, chosen);
    if (chosen.size() > before) continue;
    std::vector<std::string> names;
    for (const Module& module : all)
      if (std::find(names.begin(), names.end(), module.name) == names.end()) names.push_back(module.name);
    const auto nearest = nearest_name(target, names);
    return fail(ErrorCode::bad_input, fmt::format("no linear of {} is called \"{}\"", model.name, printable(target)),
                job.lora.targets.empty()
                    ? fmt::format("the engine's default does not suit it: write --targets all-linear, or some of {}",
                                  fmt::join(names, ", "))
                : nearest ? fmt::format("did you mean {}?", *nearest)
                          : fmt::format("linears: {}", fmt::join(names, ", ")));
  }
  return chosen;
}

double adapter_parameters(const std::vector<Module>& modules, const TrainingJob& job) {
  double parameters = 0;
  for (const Module& module : modules) {
    parameters += static_cast<double>(job.lora.rank) * (module.in + module.out) * module.copies;
    if (job.method == TrainingMethod::dora) parameters += module.out * module.copies;
  }
  return parameters;
}

}  // namespace gpuwright::fit::training
