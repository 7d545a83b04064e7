// Command lines of vLLM and llama-server, and ollama's Modelfile. What a job does not give stays the engine's own
// default and is not written.
#pragma once

#include <string>

#include "fit/emit/emit.h"

namespace gpuwright::fit {

// `model` has been checked: no scheme, no control characters, no leading dash.
Result<Emission> emit_serving(EmitTarget target, const std::string& model, const Job& job, int gpus,
                              const ServedWeights& weights);

}  // namespace gpuwright::fit
