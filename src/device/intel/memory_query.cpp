// Requests and layouts: Linux, include/uapi/drm/i915_drm.h (DRM_I915_QUERY_MEMORY_REGIONS) and xe_drm.h
// (DRM_XE_DEVICE_QUERY_MEM_REGIONS), v6.12.
#include "device/intel/memory_query.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <vector>

#include "device/sysfs/attribute.h"

namespace gpuwright::device {
namespace {

constexpr std::size_t kMostReplyBytes = 64 << 10;

struct I915Query {
  std::uint32_t items, flags;
  std::uint64_t items_at;
};
struct I915QueryItem {
  std::uint64_t query;
  std::int32_t length;
  std::uint32_t flags;
  std::uint64_t data_at;
};
struct I915Regions {
  std::uint32_t count, reserved[3];
};
struct I915Region {
  std::uint16_t memory_class, instance;
  std::uint32_t reserved0;
  std::uint64_t probed, unallocated, reserved1[8];
};
struct XeQuery {
  std::uint64_t extensions;
  std::uint32_t query, size;
  std::uint64_t data_at, reserved[2];
};
struct XeRegions {
  std::uint32_t count, pad;
};
struct XeRegion {
  std::uint16_t memory_class, instance;
  std::uint32_t least_page;
  std::uint64_t total, used, visible_total, visible_used, reserved[6];
};
constexpr unsigned long kI915Query = _IOWR('d', 0x40 + 0x39, I915Query);
constexpr unsigned long kXeQuery = _IOWR('d', 0x40 + 0x00, XeQuery);
static_assert(sizeof(I915Region) == 88 && sizeof(XeRegion) == 88);

constexpr std::uint16_t kDeviceMemory = 1;  // I915_MEMORY_CLASS_DEVICE, DRM_XE_MEM_REGION_CLASS_VRAM

// Adds up the regions behind `Header` in the reply; total and used of one by `read`.
template <class Header, class Region, class Read>
std::optional<LocalMemory> sum_of(const std::vector<char>& reply, Read&& read) {
  if (reply.size() < sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(&header, reply.data(), sizeof header);
  if (header.count > (reply.size() - sizeof header) / sizeof(Region)) return std::nullopt;
  LocalMemory sum;
  bool any = false;
  for (std::size_t i = 0; i < header.count; ++i) {
    Region region;
    std::memcpy(&region, reply.data() + sizeof header + i * sizeof region, sizeof region);
    if (region.memory_class != kDeviceMemory) continue;
    const auto [total, used] = read(region);
    if (total > INT64_MAX / 64 || used > total) return std::nullopt;
    sum.total += Bytes{static_cast<std::int64_t>(total)};
    sum.used += Bytes{static_cast<std::int64_t>(used)};
    any = true;
  }
  if (!any) return std::nullopt;
  return sum;
}

}  // namespace

// Both drivers are asked twice: how long the answer is, then for the answer.
std::optional<LocalMemory> query_i915_memory(const DrmQuery& query) {
  constexpr std::uint64_t kMemoryRegions = 4;
  I915QueryItem item{kMemoryRegions, 0, 0, 0};
  I915Query request{1, 0, reinterpret_cast<std::uintptr_t>(&item)};
  if (query(kI915Query, &request) != 0 || item.length <= 0) return std::nullopt;
  if (static_cast<std::size_t>(item.length) > kMostReplyBytes) return std::nullopt;
  std::vector<char> reply(static_cast<std::size_t>(item.length));
  item.data_at = reinterpret_cast<std::uintptr_t>(reply.data());
  if (query(kI915Query, &request) != 0 || item.length <= 0) return std::nullopt;
  return sum_of<I915Regions, I915Region>(reply, [](const I915Region& region) {
    return std::pair(region.probed, region.probed - std::min(region.unallocated, region.probed));
  });
}

std::optional<LocalMemory> query_xe_memory(const DrmQuery& query) {
  constexpr std::uint32_t kMemoryRegions = 1;
  XeQuery request{0, kMemoryRegions, 0, 0, {}};
  if (query(kXeQuery, &request) != 0 || request.size == 0 || request.size > kMostReplyBytes) return std::nullopt;
  std::vector<char> reply(request.size);
  request.data_at = reinterpret_cast<std::uintptr_t>(reply.data());
  if (query(kXeQuery, &request) != 0) return std::nullopt;
  return sum_of<XeRegions, XeRegion>(reply,
                                     [](const XeRegion& region) { return std::pair(region.total, region.used); });
}

std::optional<LocalMemory> query_local_memory(std::string_view driver, const std::string& node) {
  const int descriptor = ::open(node.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return std::nullopt;
  const auto ask = [&](unsigned long request, void* argument) {
    int result = 0;
    do result = ::ioctl(descriptor, request, argument);
    while (result == -1 && (errno == EINTR || errno == EAGAIN));
    return result;
  };
  auto memory = driver == "xe" ? query_xe_memory(ask) : query_i915_memory(ask);
  ::close(descriptor);
  return memory;
}

bool has_perfmon(std::string_view status) {
  constexpr int kPerfmon = 38, kSysAdmin = 21;  // linux/capability.h
  const std::string_view digits = value_of_line(status, "CapEff");
  std::uint64_t bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return false;
  return ((bits >> kPerfmon) & 1) != 0 || ((bits >> kSysAdmin) & 1) != 0;
}

}  // namespace gpuwright::device
