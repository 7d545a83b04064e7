#include "doctor/checks/cuda.h"

#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> cuda_checks() {
  return {
      {"cuda.stub", Layer::cuda, check_cuda_stub},     {"cuda.compat", Layer::cuda, check_cuda_compat},
      {"cuda.driver", Layer::cuda, check_cuda_driver}, {"cuda.ldpath", Layer::cuda, check_cuda_ldpath},
      {"cuda.soname", Layer::cuda, check_cuda_soname}, {"cuda.toolkit", Layer::cuda, check_cuda_toolkit},
      {"cuda.gcc", Layer::cuda, check_cuda_gcc},
  };
}

}  // namespace gpuwright::doctor
