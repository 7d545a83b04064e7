#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> cuda_checks() {
  return {};
}

}  // namespace gpuwright::doctor
