#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> communication_checks() {
  return {};
}

}  // namespace gpuwright::doctor
