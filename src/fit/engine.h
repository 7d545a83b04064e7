// What an engine's memory model has to answer. One file an engine under fit/engines/; constants that were measured,
// not derived, live in data/engine_<engine>.toml with their sources.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fit/fit.h"

namespace gpuwright::fit {

class EngineModel {
 public:
  virtual ~EngineModel() = default;
  // Fills instants, usable bytes, capacities, host and notes. binding and verdict are set by fit::estimate.
  virtual Result<Estimate> estimate(const model::Model& model, const Job& job,
                                    const std::vector<Target>& targets) const = 0;
};
// fit/engines/engines.h names them; nullptr for an engine whose memory model does not exist.
const EngineModel* engine_model(Engine engine);

// A measured constant with its range, from data/engine_<engine>.toml: [[constant]] name, low, expected, high, source,
// and optionally since (engine version) and architecture (of the GPU; "Ada" holds for "Ada Lovelace"). The unit stands
// in the name ("cuda_graphs_bytes"). Of the rows of that name, those of the given architecture come before those of
// none, and among them the newest `since` that is not after `version` holds. An unknown name is an internal error.
struct Constant {
  double low = 0, expected = 0, high = 0;
  std::string source;
};
Result<Constant> constant(Engine engine, std::string_view name, std::string_view version = {},
                          std::string_view architecture = {});

// "0.9.2" < "0.21" and "b4477" < "b5000": numbers are compared piece by piece. An empty version is the newest.
bool version_at_least(std::string_view version, std::string_view wanted);

}  // namespace gpuwright::fit
