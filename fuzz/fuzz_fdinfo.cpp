// Any text as /proc/PID/fdinfo/N: it is refused, or its values are within bounds, whatever stood there the pass before.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "device/sysfs/drm_process.h"
#include "device/sysfs/fdinfo.h"

using namespace gpuwright::device;

// Files are parted by an empty line; the first half is one pass, all of them the next.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<FoundClient> clients;
  while (!text.empty() && clients.size() < 64) {
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    if (auto client = parse_fdinfo(text.substr(0, end)))
      clients.push_back({static_cast<std::int64_t>(clients.size() % 3), std::move(*client)});
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  DrmUsage usage;
  const std::vector<FoundClient> first(clients.begin(),
                                       clients.begin() + static_cast<std::ptrdiff_t>(clients.size() / 2));
  for (const char* driver : {"amdgpu", "i915", "xe"}) usage.update(first, driver, 1'000'000'000);
  for (const char* driver : {"amdgpu", "i915", "xe"})
    for (const DrmProcess& process : usage.update(clients, driver, 2'000'000'000)) {
      for (const auto& [name, bytes] : process.memory)
        if (bytes.count < 0) std::abort();
      for (const auto& [name, ratio] : process.engines)
        if (ratio && !(ratio->value >= 0 && ratio->value <= 1)) std::abort();
      static_cast<void>(memory_in(process, {"vram", "local"}));
      static_cast<void>(busiest(process, {"gfx", "compute", "ccs"}));
    }
  return 0;
}
