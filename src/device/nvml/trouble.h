// Why NVIDIA's library cannot be used, in words that say what to do.
#pragma once

#include <optional>
#include <string>

#include "base/nvml_abi.h"
#include "device/snapshot.h"

namespace gpuwright::device::nvidia {

// What is known when nvmlInit fails.
struct InitFailure {
  nvml::Return code = nvml::kSuccess;
  std::string driver_words;  // nvmlErrorString
  std::optional<std::string> module_version, library_version;
  bool has_devices = false;      // NVIDIA GPUs on the PCI bus
  bool nodes_forbidden = false;  // /dev/nvidia* are there but may not be opened
  bool inside_container = false;
};
SourceReport report_of(const InitFailure& failure);

// What a device in this state needs; empty for State::ok.
std::string advice_for(State state, int index, const std::string& driver_words);

}  // namespace gpuwright::device::nvidia
