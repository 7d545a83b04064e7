// The [[gpu]] tables of a scenario.
#pragma once

#include <vector>

#include "base/result.h"
#include "sim/scenario.h"
#include "sim/toml_table.h"

namespace gpuwright::sim {

// Appends the GPUs that one [[gpu]] table stands for.
Status read_gpus(TomlTable& table, Scenario& scenario);

}  // namespace gpuwright::sim
