// --strategy auto: of all ways to train this model on these GPUs, the one that fits and costs the least time.
//
// "Least" is in this order: the method that was asked for before those that are only allowed, then the cost, then the
// order of the lists of the space (fewer tricks first). The cost is the estimated slow-down (slowdown.h); pure 16-bit
// training, which loses small updates in rounding, must be twice as fast to be preferred (data/strategy.toml,
// pure_16bit_handicap: a preference, not a measurement).
//
// The search is exact. The estimated time of a plan is cheap, its memory is not, so plans are tried in the order above
// and the first that fits is the answer. Most of those before it are never estimated: memory only grows with the
// micro-batch, with less checkpointing, with an unchunked loss and with larger optimizer states, so a plan that needs
// at least as much in each respect as one that failed is passed over, and the leanest plan of each method, precision
// and layout is tried first: if that fails, the whole group is dead (branch and bound, with "fits or not" as the
// bound).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fit/strategy/slowdown.h"
#include "fit/strategy/space.h"
#include "fit/training/training.h"

namespace gpuwright::fit {

struct StrategyRequest {
  TrainingJob job;
  std::int64_t global_batch = 16;  // sequences of one optimizer step over all GPUs
  Freedom freedom;
  bool strict = false;  // a tight fit is no fit; else it is taken only where nothing fits surely
  std::function<bool(const TrainingJob&)> allowed;  // plans that may be the answer (all, when it is empty)
};

struct Plan {
  TrainingJob job;
  Estimate estimate;
  Slowdown slowdown;
};

// One change on the way from the plain job to the answer, with everything before it already done.
struct StrategyStep {
  std::string change;
  Bytes peak_after;  // expected, of the fullest GPU
  Bytes saves;       // negative where it takes more
  double slowdown_after = 1;
  Verdict verdict_after = Verdict::no;
};

struct Strategy {
  std::optional<Plan> best;  // nothing fits: empty
  Plan plain;                // as asked, with none of the changes
  Plan leanest;              // of the space: what is short when nothing fits
  std::vector<StrategyStep> steps;
  std::vector<Plan> alternatives;  // the best plans of other shapes that fit, in order
  std::size_t plans = 0;           // of the space
  std::size_t estimated = 0;       // of these, memory was estimated for
};

Result<Strategy> find_strategy(const model::Model& model, const StrategyRequest& request,
                               const std::vector<Target>& targets, const Machine& machine);
// The same over a space of the caller's.
Result<Strategy> find_strategy(const model::Model& model, const StrategyRequest& request, const Space& space,
                               const std::vector<Target>& targets, const Machine& machine);

// What find_strategy minimises among plans of one method.
Result<double> cost_of(const TrainingJob& job, const SlowdownModel& slowdown);

// The model as a method wants it: QLoRA quantises plain weights to NF4 with doubly quantised scales.
Result<model::Model> model_for(const model::Model& model, TrainingMethod method);

// "ZeRO-3, micro-batch 4 x 2, full checkpointing": what makes a plan, in a line.
std::string describe(const TrainingJob& job);

}  // namespace gpuwright::fit
