#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> driver_checks() {
  return {};
}

}  // namespace gpuwright::doctor
