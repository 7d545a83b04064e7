// nvmap, the memory manager of Tegra's kernel, tells in debugfs who holds memory for the GPU.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace gpuwright::device {

struct NvmapClient {
  std::int64_t pid = 0;
  Bytes memory;
};

// The text of nvmap/iovmm/clients: lines "user  python3  4711  812340K", and a total. Clients of one pid are summed.
std::vector<NvmapClient> parse_nvmap_clients(std::string_view text);

}  // namespace gpuwright::device
