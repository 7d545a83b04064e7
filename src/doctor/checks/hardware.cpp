#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> hardware_checks() {
  return {};
}

}  // namespace gpuwright::doctor
