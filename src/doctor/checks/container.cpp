#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> container_checks() {
  return {};
}

}  // namespace gpuwright::doctor
