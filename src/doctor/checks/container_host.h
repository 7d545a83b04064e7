// What a host has for running containers. For the checks.
#pragma once

#include "doctor/host.h"

namespace gpuwright::doctor {

bool has_docker(const Host& host);
bool has_container_toolkit(const Host& host);  // NVIDIA's

}  // namespace gpuwright::doctor
