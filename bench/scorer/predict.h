// What gpuwright says about a line of the table: the question is put through the same doors as a user's (model,
// catalogue, fit::estimate), and of the answer the asked component is read at the asked place and meter.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "catalog/catalog.h"
#include "fit/fit.h"
#include "row.h"
#include "score.h"

namespace gpuwright::scorer {

struct Answer {
  Prediction prediction;
  std::vector<std::string> notes;  // assumptions of the model's resolution
};

// An error is the reason why the line is not predicted: unsupported, or bad_input when it contradicts itself.
Result<Answer> predict(const Row& row, const catalog::Catalog& catalog);

// llama.cpp, ollama and what is built on them, whose compute buffers are one group.
bool is_llama_family(const Row& row);

// The whole estimate behind the line, for people who look into a miss.
std::string estimate_text(const Row& row, const model::Model& model, const fit::Estimate& answer,
                          const std::vector<std::string>& notes);
Result<std::string> explain(const Row& row, const catalog::Catalog& catalog);

}  // namespace gpuwright::scorer
