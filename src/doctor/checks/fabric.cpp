#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> fabric_checks() {
  return {};
}

}  // namespace gpuwright::doctor
