#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> intel_checks() {
  return {};
}

}  // namespace gpuwright::doctor
