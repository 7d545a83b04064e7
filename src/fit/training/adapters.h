// The linears of a model that get adapters, found by the names that its own code uses: q_proj, c_attn, W_pack,
// query_key_value, litgpt's query and value, "all-linear".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fit/training/job.h"
#include "model/model.h"

namespace gpuwright::fit::training {

// What a linear reads, which tells what its adapter keeps for backward.
enum class Reads : std::uint8_t { attention_input, attention_output, feed_forward_input, feed_forward_output };

struct Module {
  std::string name;         // "q_proj"
  std::int32_t layer = -1;  // -1: embedding or head, which only an explicit target names
  double in = 0, out = 0;
  double copies = 1;  // experts
  bool is_expert = false;
  Reads reads = Reads::attention_input;

  double weights() const { return in * out * copies; }
};

// Every linear of the blocks (no embeddings, heads, norms, routers).
std::vector<Module> linears_of(const model::Model& model);

// What the engine adapts where the job names nothing. PEFT has a list by family; for a model that is not in it, which
// PEFT would refuse without names (`known` is false), the query's and value's projections are taken, whole fused ones,
// every projection of a latent attention, or else every linear.
struct DefaultTargets {
  std::vector<std::string> names;
  bool known = true;
};
DefaultTargets default_targets(const model::Model& model, const TrainingJob& job);

// Those that the job's targets name. bad_input when a name matches none, with the nearest that exists.
Result<std::vector<Module>> adapted_modules(const model::Model& model, const TrainingJob& job);

// r x (in + out) each, and the magnitudes of DoRA.
double adapter_parameters(const std::vector<Module>& modules, const TrainingJob& job);

}  // namespace gpuwright::fit::training
