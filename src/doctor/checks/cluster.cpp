#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> cluster_checks() {
  return {};
}

}  // namespace gpuwright::doctor
