// Several models on the same GPUs at once.
#pragma once

#include <string>
#include <vector>

#include "fit/fit.h"

namespace gpuwright::fit {

struct Tenant {
  std::string name;
  Estimate estimate;  // of this model alone on the same targets
  // The engine takes its whole budget (a share of the card) when it starts, whatever the job needs: vLLM, SGLang.
  bool claims_budget = false;
};

// Nothing makes the tenants take turns, so the answer adds up their peaks: one instant, "all at their peak", against
// what is free on each GPU less the reserve. Budgets that together exceed the card are `no` even where the needs would
// fit; the advice then says the share that each engine should be given.
Estimate together(const std::vector<Tenant>& tenants, const std::vector<Target>& targets, Bytes reserve);

}  // namespace gpuwright::fit
