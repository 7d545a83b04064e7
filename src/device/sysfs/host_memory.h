// RAM of the machine, for devices that share it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace gpuwright::device {

struct HostMemory {
  std::optional<Bytes> total, available;  // MemTotal, MemAvailable
};
HostMemory parse_meminfo(std::string_view text);
HostMemory read_host_memory(const std::string& root);

}  // namespace gpuwright::device
