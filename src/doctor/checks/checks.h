// The tables of checks, one function a theme. all_checks() of doctor.h puts them into one list.
#pragma once

#include <vector>

#include "doctor/check.h"
#include "doctor/machine.h"

namespace gpuwright::doctor {

std::vector<Check> pci_checks();
std::vector<Check> kernel_module_checks();
std::vector<Check> driver_checks();
std::vector<Check> node_checks();
std::vector<Check> fabric_checks();
std::vector<Check> hardware_checks();
std::vector<Check> system_checks();
std::vector<Check> container_checks();
std::vector<Check> amd_checks();
std::vector<Check> intel_checks();
std::vector<Check> cuda_checks();
std::vector<Check> framework_checks();
std::vector<Check> communication_checks();
std::vector<Check> cluster_checks();
std::vector<Check> performance_checks();

}  // namespace gpuwright::doctor
