#include "doctor/checks/framework.h"

#include "doctor/checks/checks.h"

namespace gpuwright::doctor {

std::vector<Check> framework_checks() {
  return {
      {"fw.visible", Layer::framework, check_fw_visible},
      {"fw.torch", Layer::framework, check_fw_torch},
      {"fw.pair", Layer::framework, check_fw_pair},
      {"fw.wheels", Layer::framework, check_fw_wheels},
      {"fw.libstdcxx", Layer::framework, check_fw_libstdcxx},
      {"fw.abi", Layer::framework, check_fw_abi},
      {"fw.numpy", Layer::framework, check_fw_numpy},
      {"fw.alloc", Layer::framework, check_fw_alloc},
      {"fw.tensorflow", Layer::framework, check_fw_tensorflow},
      {"fw.jax", Layer::framework, check_fw_jax},
  };
}

}  // namespace gpuwright::doctor
