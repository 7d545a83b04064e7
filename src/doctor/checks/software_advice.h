// What several checks of cuda.* and fw.* ask and advise. For the files of this folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/compat.h"
#include "doctor/check.h"
#include "doctor/machine.h"
#include "doctor/software.h"

namespace gpuwright::doctor {

// "8.9" -> 89; nothing for "gfx942" and "".
std::optional<Sm> sm_of(std::string_view capability);
std::string capability_of(Sm sm);  // 89 -> "8.9"

// Capabilities of the NVIDIA GPUs of the bus, each once, lowest first; those that are not known are left out.
std::vector<std::string> nvidia_capabilities(const Machine& machine);
// AMD GPUs with memory of their own: what sits in the processor is no reason to advise anything.
bool has_amd_board(const Machine& machine);

// The driver that programs reach: the loaded module's, or that of a forward-compatibility libcuda which the loader
// finds first. Nothing on WSL, whose driver is Windows' and counts otherwise.
std::optional<std::string> driver_for_programs(const Machine& machine);

struct TorchAdvice {
  std::string version;  // "2.7.1"
  std::string tag;      // "cu126"
  std::string vision;   // "0.22", empty where unknown
};
// The build to install in the place of `current` ("2.7.0"; empty: the newest): of the same series if one serves all
// GPUs and the driver, else of the newest series that has one.
std::optional<TorchAdvice> advised_torch(const Machine& machine, std::string_view current);

// Sets what every text about a PyTorch tells: torch_version, environment, python, and the advice: new_torch, new_tag.
void describe(const Machine& machine, const Torch& torch, Problem& problem);

// "2.9.0a0+git1234": built from source or of a night; tables of releases do not speak of it.
bool is_release(std::string_view version);

}  // namespace gpuwright::doctor
