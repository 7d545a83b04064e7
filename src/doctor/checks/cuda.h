// The checks of cuda.*, one function each. For cuda.cpp, which lists them.
#pragma once

#include "doctor/check.h"
#include "doctor/machine.h"

namespace gpuwright::doctor {

Outcome check_cuda_driver(const Machine& machine);   // too old for a framework's CUDA
Outcome check_cuda_compat(const Machine& machine);   // a forward-compatibility libcuda that does not serve
Outcome check_cuda_stub(const Machine& machine);     // the toolkit's empty libcuda is found first
Outcome check_cuda_ldpath(const Machine& machine);   // LD_LIBRARY_PATH puts other libraries before PyTorch's own
Outcome check_cuda_soname(const Machine& machine);   // a library that PyTorch needs is not there
Outcome check_cuda_toolkit(const Machine& machine);  // compiler and environment variables
Outcome check_cuda_gcc(const Machine& machine);      // the host compiler is too new for nvcc

}  // namespace gpuwright::doctor
