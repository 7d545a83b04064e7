// From the `model` and `arch` of a line to a Model: a preset by its repository name, else a shape laid out from the
// facts of the line itself. What cannot be told is refused with a reason, never guessed.
#pragma once

#include <string>

#include "base/result.h"
#include "model/model.h"
#include "row.h"

namespace gpuwright::scorer {

// How much of the model the wanted figure depends on. A cache row needs no more than layers and head sizes.
enum class Need : std::uint8_t {
  nothing,  // a library's own constant
  cache,    // layers and what each keeps per token or sequence
  graph,    // also hidden size, heads and vocabulary
  weights,  // every tensor
};

struct ResolvedModel {
  model::Model model;
  std::vector<std::string> notes;  // what was assumed or disagrees, one sentence each
};

Result<ResolvedModel> resolve_model(const Row& row, Need need);

// The same model as a subset of its layers, for the parts of a cache that logs print apart.
model::Model with_layers_of_kind(const model::Model& model, bool windowed);
// What an extra context over the multi-token-prediction blocks sees: those blocks alone, embedding and head shared.
Result<model::Model> prediction_layers(const Row& row, const model::Model& model);
// Only tensors inside the blocks.
model::Model repeating_layers(const model::Model& model);

}  // namespace gpuwright::scorer
