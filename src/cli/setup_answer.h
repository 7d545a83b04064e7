// The answer of setup for people and as gpuwright.setup/1.
#pragma once

#include "base/json.h"
#include "cli/command.h"
#include "doctor/setup/setup.h"

namespace gpuwright::cli {

struct SetupAnswer {
  doctor::SetupWish wish;
  std::optional<doctor::SetupSet> set;
  std::vector<doctor::SetupAction> actions;
  doctor::SetupRefusal refusal;  // where there is no set
  std::vector<const doctor::OldRecipe*> recipes;
};

void print_setup(const SetupAnswer& answer, const Console& console);
Json to_json(const SetupAnswer& answer);
void print_recipes(const std::vector<const doctor::OldRecipe*>& recipes, const Console& console);

}  // namespace gpuwright::cli
