// The engines whose memory models exist, one function each; engine_model() in engine.cpp maps Engine to them.
#pragma once

#include "fit/engine.h"

namespace gpuwright::fit {

const EngineModel& llama_cpp_engine();  // also ollama, which runs llama.cpp's graphs
const EngineModel& transformers_engine();
const EngineModel& vllm_engine();
const EngineModel& sglang_engine();

}  // namespace gpuwright::fit
