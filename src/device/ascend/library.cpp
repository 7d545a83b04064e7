#include "device/ascend/library.h"

#include <dlfcn.h>

namespace gpuwright::device::dcmi {

template <class Function>
void Library::find(Function& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (function != nullptr) return;
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
  }
}

Library::Library(const std::string& name) {
  handle_ = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* text = ::dlerror();
    trouble_ = text != nullptr ? text : name + " cannot be opened";
    // Where Huawei's installer puts it; the loader knows the folder only after a set-up of its paths.
    if (name == "libdcmi.so") handle_ = ::dlopen("/usr/local/dcmi/libdcmi.so", RTLD_LAZY | RTLD_LOCAL);
    if (handle_ == nullptr) return;
  }
  find(init, {"dcmi_init"});
  find(card_list, {"dcmi_get_card_list", "dcmi_get_card_num_list"});
  find(device_id_in_card, {"dcmi_get_device_id_in_card"});
  find(device_num_in_card, {"dcmi_get_device_num_in_card"});
  find(device_type, {"dcmi_get_device_type"});
  find(chip_info, {"dcmi_get_device_chip_info"});
  find(pcie_info, {"dcmi_get_device_pcie_info_v2"});
  find(hbm_info, {"dcmi_get_device_hbm_info"});
  find(hbm_info_in_kb, {"dcmi_get_hbm_info"});
  find(memory_info_v3, {"dcmi_get_device_memory_info_v3"});
  find(memory_info, {"dcmi_get_device_memory_info_v2", "dcmi_get_memory_info"});
  find(utilization, {"dcmi_get_device_utilization_rate"});
  find(frequency, {"dcmi_get_device_frequency"});
  find(temperature, {"dcmi_get_device_temperature"});
  find(power, {"dcmi_get_device_power_info"});
  find(health, {"dcmi_get_device_health"});
  find(error_codes, {"dcmi_get_device_errorcode_v2"});
  find(error_text, {"dcmi_get_device_errorcode_string"});
  find(ecc_info, {"dcmi_get_device_ecc_info"});
  find(processes, {"dcmi_get_device_resource_info"});
  find(logic_id, {"dcmi_get_device_logic_id"});
  find(driver_version, {"dcmi_get_driver_version"});
  find(library_version, {"dcmi_get_dcmi_version"});
}

Library::~Library() {
  // Its threads may still run: the library is left loaded, as there is nothing to gain from unloading it.
}

Why why_of_code(int code) {
  switch (code) {
    case kNotSupported:
    case kNotInContainer:
      return Why::not_supported;
    case kNotPermitted:
      return Why::no_permission;
    case kNoSuchDevice:
      return Why::lost;
    case kNotReady:
    case kUpgrading:
    case kOccupied:
      return Why::no_data;
    case kTimeout:
      return Why::unresponsive;
    default:
      return Why::failed;
  }
}

}  // namespace gpuwright::device::dcmi
