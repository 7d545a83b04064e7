#include "device/sysfs/host_memory.h"

#include "base/text.h"
#include "device/sysfs/attribute.h"

namespace gpuwright::device {
namespace {

// "32594868 kB"
std::optional<Bytes> kib_of(std::string_view text) {
  if (!text.ends_with(" kB")) return std::nullopt;
  const auto kib = to_integer(trim(text.substr(0, text.size() - 3)));
  const auto bytes = kib ? checked_multiply(*kib, 1024) : std::nullopt;
  return bytes ? std::optional(Bytes{*bytes}) : std::nullopt;
}

}  // namespace

HostMemory parse_meminfo(std::string_view text) {
  HostMemory memory;
  memory.total = kib_of(value_of_line(text, "MemTotal"));
  memory.available = kib_of(value_of_line(text, "MemAvailable"));
  if (memory.total && memory.available && *memory.available > *memory.total) memory.available.reset();
  return memory;
}

HostMemory read_host_memory(const std::string& root) {
  return parse_meminfo(read_start(root + "/proc/meminfo").text);
}

}  // namespace gpuwright::device
