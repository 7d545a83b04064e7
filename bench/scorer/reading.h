// Reading one figure out of an Estimate: which components, seen by which meter, at which place.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fit/fit.h"
#include "row.h"

namespace gpuwright::scorer {

// What to add up of one instant on one GPU.
using InstantFigure = std::function<fit::Range(const fit::GpuEstimate&, const fit::Instant&)>;

// The figure at the row's place (gpu, gpuN, sum), the largest over the instants. `instant` of the settings narrows
// the instants to that one where the engine knows it. "gpu" of several is the GPU that holds most.
Result<fit::Range> read_gpus(const Row& row, const fit::Estimate& estimate, const InstantFigure& figure);

// Components of these kinds in host memory.
fit::Range read_host(const fit::Estimate& estimate, const std::vector<fit::ComponentKind>& kinds);

InstantFigure sum_of(std::vector<fit::ComponentKind> kinds);
// Of these kinds, what only the device's own counters see: the part that a framework's allocator knows nothing of.
InstantFigure outside_of_framework(std::vector<fit::ComponentKind> kinds);
// Everything that the row's meter sees. An unknown meter spans from the narrowest to the widest, expecting the middle.
Result<InstantFigure> total_seen_by(std::string_view meter);

fit::Range operator+(const fit::Range& a, const fit::Range& b);

}  // namespace gpuwright::scorer
