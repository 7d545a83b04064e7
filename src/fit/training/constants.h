// Measured constants of training, from data/training.toml.
#pragma once

#include <string_view>

#include "fit/engine.h"

namespace gpuwright::fit::training {

// As fit::constant(): of the rows of that name, those of the named GPU architecture come before those of an engine, and
// these before those of none. An unknown name is an internal error.
Result<Constant> constant(std::string_view name, std::string_view engine = {}, std::string_view architecture = {});

}  // namespace gpuwright::fit::training
