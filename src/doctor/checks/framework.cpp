#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> framework_checks() {
  return {};
}

}  // namespace gpuwright::doctor
