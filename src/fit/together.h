// Several models on the same GPUs at once.
#pragma once

#include <string>
#include <vector>

#include "fit/fit.h"

namespace gpuwright::fit {

struct Tenant {
  std::string name;
  Estimate estimate;  // of this model alone on the same targets
};

// Nothing makes the tenants take turns, so the answer adds up their peaks: one instant, "all at their peak", against
// what is free on each GPU less the reserve. The budget of an engine that claims a share of the card (vLLM) is not
// honoured here; what each tenant needs is.
Estimate together(const std::vector<Tenant>& tenants, const std::vector<Target>& targets, Bytes reserve);

}  // namespace gpuwright::fit
