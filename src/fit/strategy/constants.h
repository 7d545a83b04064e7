// Constants of the slow-down model, from data/strategy.toml.
#pragma once

#include <string_view>

#include "fit/engine.h"

namespace gpuwright::fit::strategy {

// An unknown name is an internal error.
Result<Constant> constant(std::string_view name);

}  // namespace gpuwright::fit::strategy
