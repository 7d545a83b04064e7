// The two faces of a fit answer: JSON (schema gpuwright.fit/1) and text.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command.h"
#include "cli/fit_request.h"
#include "fit/fit.h"
#include "fit/solve.h"

namespace gpuwright::cli {

struct FitAnswer {
  const FitRequest* request = nullptr;
  fit::Estimate estimate;
  std::optional<fit::Solution> solution;    // --max
  std::vector<fit::GpuChoice> gpu_choices;  // --smallest-gpu, smallest first
};

Json to_json(const FitAnswer& answer);
Json to_json(const model::Model& model);
void print(const FitAnswer& answer, const Console& console);

std::string_view name_of(fit::Quantity quantity);

}  // namespace gpuwright::cli
