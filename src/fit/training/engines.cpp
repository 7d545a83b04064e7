#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "fit/training/job.h"

namespace gpuwright::fit {
namespace {

struct EngineWord {
  std::string_view word;
  TrainingEngine engine;
};
// The first word of each engine is its name.
constexpr std::array kWords = {
    EngineWord{"transformers", TrainingEngine::transformers},
    EngineWord{"deepspeed", TrainingEngine::deepspeed},
    EngineWord{"fsdp", TrainingEngine::fsdp},
    EngineWord{"torchtune", TrainingEngine::torchtune},
    EngineWord{"torchtitan", TrainingEngine::torchtitan},
    EngineWord{"unsloth", TrainingEngine::unsloth},
    EngineWord{"litgpt", TrainingEngine::litgpt},
    EngineWord{"megatron", TrainingEngine::megatron},
    EngineWord{"gpuwright", TrainingEngine::gpuwright},
    EngineWord{"peft", TrainingEngine::transformers},
    EngineWord{"trl", TrainingEngine::transformers},
    EngineWord{"hf", TrainingEngine::transformers},
    EngineWord{"ms-swift", TrainingEngine::transformers},
    EngineWord{"swift", TrainingEngine::transformers},
    EngineWord{"llama-factory", TrainingEngine::transformers},
    EngineWord{"accelerate", TrainingEngine::transformers},
    EngineWord{"axolotl", TrainingEngine::transformers},
    EngineWord{"megatron-lm", TrainingEngine::megatron},
    EngineWord{"nemo", TrainingEngine::megatron},
    EngineWord{"lit-gpt", TrainingEngine::litgpt},
    EngineWord{"titan", TrainingEngine::torchtitan},
    EngineWord{"tune", TrainingEngine::torchtune},
};

}  // namespace

std::string_view name_of(TrainingEngine engine) {
  return std::find_if(kWords.begin(), kWords.end(), [&](const EngineWord& row) { return row.engine == engine; })->word;
}

std::string_view name_of(TrainingMethod method) {
  constexpr std::array<std::string_view, 4> kNames = {"full", "lora", "dora", "qlora"};
  return kNames[static_cast<std::size_t>(method)];
}

// DeepSpeed keeps fp32 copies of whatever is trained, adapters included (runtime/bf16_optimizer.py, zero/stage3.py).
Precision usual_precision(TrainingEngine engine, TrainingMethod method) {
  if (engine == TrainingEngine::deepspeed) return Precision::mixed_deepspeed;
  if (method != TrainingMethod::full) return Precision::pure_bf16;  // a frozen 16-bit base
  switch (engine) {
    case TrainingEngine::megatron:
      return Precision::mixed_megatron;
    case TrainingEngine::torchtune:
    case TrainingEngine::litgpt:
    case TrainingEngine::unsloth:
      return Precision::pure_bf16;
    case TrainingEngine::gpuwright:
      return Precision::fp32;
    default:
      return Precision::amp_bf16;
  }
}

Result<TrainingEngineChoice> training_engine_named(std::string_view text) {
  const auto at = text.find('@');
  const std::string wanted = lower(trim(text.substr(0, at)));
  const std::string version(at == std::string_view::npos ? "" : trim(text.substr(at + 1)));
  std::vector<std::string> names;
  for (const EngineWord& row : kWords) {
    if (row.word == wanted) return TrainingEngineChoice{row.engine, version};
    names.emplace_back(row.word);
  }
  const auto nearest = nearest_name(wanted, names);
  return fail(ErrorCode::not_found, fmt::format("no training engine is called \"{}\"", printable(wanted)),
              nearest ? fmt::format("did you mean {}?", *nearest)
                      : fmt::format("training engines: {}", fmt::join(names.begin(), names.begin() + 9, ", ")));
}

}  // namespace gpuwright::fit
