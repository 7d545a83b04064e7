#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> amd_checks() {
  return {};
}

}  // namespace gpuwright::doctor
