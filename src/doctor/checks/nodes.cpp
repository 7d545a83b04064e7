#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> node_checks() {
  return {};
}

}  // namespace gpuwright::doctor
