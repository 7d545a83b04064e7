// NVIDIA's management library as a simulated Host speaks it: the same C functions serve inside this program and in the
// libnvidia-ml.so.1 that other programs load (library/).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace gpuwright::sim {

class Host;

// The host that the functions speak for from now on, in the whole process; null = none (every call answers
// NVML_ERROR_DRIVER_NOT_LOADED).
void install_nvml(std::shared_ptr<Host> host);

// Likewise, but the host is made by the first call that needs one: for the library, which is loaded by programs that
// may never ask.
void install_nvml_when_asked(std::shared_ptr<Host> (*make)());

// The function of that name as dlsym would give it, or nullptr where the simulated driver lacks it: a scenario may
// leave symbols out as an old driver does.
void* nvml_symbol(std::string_view name);

// Calls answered since the start, all functions together.
std::int64_t nvml_calls();

}  // namespace gpuwright::sim
