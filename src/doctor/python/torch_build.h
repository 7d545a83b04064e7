// What an installed PyTorch was built for, by the files that it brought.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host.h"
#include "doctor/python/environment.h"

namespace gpuwright::doctor {

struct TorchBuild {
  std::string folder;                         // ".../site-packages/torch"
  std::string version;                        // "2.7.0+cu126"
  std::optional<std::string> cuda, hip, xpu;  // "12.6", "6.3.42131-fa1d09cbd", "20250000"
  std::string library(std::string_view name) const { return folder + "/lib/" + std::string(name); }
  bool for_gpus() const { return cuda || hip || xpu; }
  std::string_view tag() const { return local_tag(version); }  // "cu126", "cpu", ""
};

// torch/version.py, as the build writes it (tools/generate_torch_version.py): assignments of strings or None.
std::optional<TorchBuild> parse_torch_version(std::string_view text);
std::optional<TorchBuild> read_torch(const Host& host, const PythonEnvironment& environment);

}  // namespace gpuwright::doctor
