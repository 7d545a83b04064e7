// Which NVIDIA driver a host has, by its files. For Machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doctor/machine.h"

namespace gpuwright::doctor {

NvidiaDriver read_nvidia_driver(const Host& host, const std::vector<std::string>& library_folders);
// ld.so.conf with what it includes, then the loader's own folders; each real folder once, bounded.
std::vector<std::string> read_library_folders(const Host& host);

// "580.95.05" of /proc/driver/nvidia/version; nothing where the text holds no version.
std::optional<std::string> version_in_module_text(std::string_view text);
// "580.95.05" of "libcuda.so.580.95.05"; nothing for "libcuda.so.1".
std::optional<std::string> version_in_library_name(std::string_view name, std::string_view stem);

}  // namespace gpuwright::doctor
