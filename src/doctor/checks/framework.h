// The checks of fw.*, one function each. For framework.cpp, which lists them.
#pragma once

#include "doctor/check.h"
#include "doctor/machine.h"

namespace gpuwright::doctor {

Outcome check_fw_torch(const Machine& machine);      // built for these GPUs at all
Outcome check_fw_pair(const Machine& machine);       // torchvision, torchaudio and others made for another PyTorch
Outcome check_fw_wheels(const Machine& machine);     // NVIDIA's wheels that PyTorch asks for
Outcome check_fw_abi(const Machine& machine);        // extensions that want symbols which PyTorch lacks
Outcome check_fw_libstdcxx(const Machine& machine);  // a C++ library that is too old for what is loaded
Outcome check_fw_numpy(const Machine& machine);
Outcome check_fw_visible(const Machine& machine);  // variables that hide GPUs
Outcome check_fw_alloc(const Machine& machine);    // settings of PyTorch's allocator
Outcome check_fw_tensorflow(const Machine& machine);
Outcome check_fw_jax(const Machine& machine);

}  // namespace gpuwright::doctor
