// The two faces of a fit answer: JSON (schema gpuwright.fit/1) and text.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command.h"
#include "cli/fit_request.h"
#include "fit/fit.h"
#include "fit/solve.h"
#include "fit/strategy/strategy.h"
#include "fit/training/solve.h"

namespace gpuwright::cli {

struct FitAnswer {
  const FitRequest* request = nullptr;
  fit::Estimate estimate;
  std::optional<fit::Solution> solution;                   // --max
  std::vector<fit::GpuChoice> gpu_choices;                 // --smallest-gpu, smallest first
  std::optional<fit::TrainingSolution> training_solution;  // --train with --max
  std::optional<fit::Strategy> strategy;                   // --strategy auto

  // What was maximised, whatever the job.
  std::optional<std::int64_t> largest() const {
    if (solution) return solution->value;
    return training_solution ? std::optional(training_solution->value) : std::nullopt;
  }
};

Json to_json(const FitAnswer& answer);
Json to_json(const model::Model& model);
void print(const FitAnswer& answer, const Console& console);

std::string_view name_of(fit::Quantity quantity);

}  // namespace gpuwright::cli
