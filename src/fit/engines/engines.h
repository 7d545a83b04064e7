// The engines whose memory models exist, one function each; engine_model() in engine.cpp maps Engine to them.
#pragma once

#include "fit/engine.h"

namespace gpuwright::fit {}  // namespace gpuwright::fit
