#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> system_checks() {
  return {};
}

}  // namespace gpuwright::doctor
