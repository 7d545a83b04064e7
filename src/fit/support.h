// What an engine runs: on which hardware, which models, in which formats of weights and cache, and which of its
// versions are known here. The facts are in data/engine_support.toml with their sources; what they do not mention is
// accepted.
#pragma once

#include <string>
#include <vector>

#include "fit/fit.h"

namespace gpuwright::fit {

// unsupported, with the reason: the engine does not run on that device. A target without hardware is accepted.
Status check_hardware(const model::Model& model, const Job& job, const Target& target);

// The same for the model, its weight format and the types of the cache.
Status check_support(const model::Model& model, const Job& job);

// What people serve such a model with, where they name nothing: llama.cpp for GGUF and its quantisations, transformers
// for what vLLM refuses (vision encoders, T5), else vLLM.
Engine usual_engine(const model::Model& model);

// What runs, but not as one may think: emulated formats, experimental loaders, versions beyond the known ones.
Result<std::vector<std::string>> support_notes(const model::Model& model, const Job& job,
                                               const std::vector<Target>& targets);

}  // namespace gpuwright::fit
