#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> performance_checks() {
  return {};
}

}  // namespace gpuwright::doctor
