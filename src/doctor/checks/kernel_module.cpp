#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> kernel_module_checks() {
  return {};
}

}  // namespace gpuwright::doctor
