// The settings of a line as the question gpuwright is asked: a Job and the GPUs to put it on. A setting that is not
// told is left to the engine's own default, as a user's would be.
#pragma once

#include <vector>

#include "base/result.h"
#include "catalog/catalog.h"
#include "fit/fit.h"
#include "row.h"

namespace gpuwright::scorer {

struct Scenario {
  fit::Job job;
  std::vector<fit::Target> targets;
  bool memory_known = false;  // else the targets are as large as can be, and nothing may be derived from their size
};

// Which end of the printed ranges (memory of the GPU, KV budget) to take.
enum class End : std::uint8_t { low, middle, high };

Result<fit::EngineChoice> engine_of(const Row& row);
Result<Scenario> scenario_of(const Row& row, const catalog::Catalog& catalog, End end);

// One of the GPUs that the line names.
struct PlacedTarget {
  fit::Target target;
  bool memory_known = false;
};
Result<PlacedTarget> place_one(const Row& row, const catalog::Catalog& catalog, End end);

// "A100-80GB", "RTXA6000", "RTX3090-24GB": the names of the table as people write them, found in the catalogue.
// nullptr when it is not there; of several that fit, the first of NVIDIA's with that much memory.
const catalog::Accelerator* find_gpu(const catalog::Catalog& catalog, std::string_view name);

}  // namespace gpuwright::scorer
