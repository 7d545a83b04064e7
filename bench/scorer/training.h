// A line about training as the question gpuwright is asked: its settings as a TrainingJob.
#pragma once

#include <string>

#include "base/result.h"
#include "catalog/catalog.h"
#include "fit/training/training.h"
#include "predict.h"
#include "row.h"
#include "scenario.h"

namespace gpuwright::scorer {

bool is_training(const Row& row);

struct TrainingScenario {
  model::Model model;  // its base as the line stores it
  fit::TrainingJob job;
  std::vector<fit::Target> targets;
  bool memory_known = false;
  std::vector<std::string> notes;
};
Result<TrainingScenario> training_scenario_of(const Row& row, const catalog::Catalog& catalog, End end);

Result<Answer> predict_training(const Row& row, const catalog::Catalog& catalog);
Result<std::string> explain_training(const Row& row, const catalog::Catalog& catalog);

}  // namespace gpuwright::scorer
