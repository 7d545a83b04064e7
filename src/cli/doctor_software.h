// What is installed above the driver, for gpuwright.doctor/1.
#pragma once

#include "base/json.h"
#include "doctor/machine.h"

namespace gpuwright::cli {

// doctor::read_inventory as JSON; what is not known is null.
Json software_json(const doctor::Machine& machine);

}  // namespace gpuwright::cli
