// Container, virtual machine, WSL or Jetson: where a program runs. For Machine.
#pragma once

#include "doctor/machine.h"

namespace gpuwright::doctor {

Surroundings read_surroundings(const Host& host);

}  // namespace gpuwright::doctor
