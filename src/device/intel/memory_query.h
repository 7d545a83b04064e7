// How much local memory an Intel GPU has, and how much of it is taken: i915 and xe tell only who asks the device node.
// Without CAP_PERFMON they answer, but hide what is taken (all free, or 0 used).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace gpuwright::device {

struct LocalMemory {
  Bytes total, used;
};

// As ioctl(2): 0, or -1.
using DrmQuery = std::function<int(unsigned long request, void* argument)>;

// All regions of the device together. Nothing without local memory, and when the driver's answer makes no sense.
std::optional<LocalMemory> query_i915_memory(const DrmQuery& query);
std::optional<LocalMemory> query_xe_memory(const DrmQuery& query);

// Asks /dev/dri/renderDN. Nothing where this user may not open it.
std::optional<LocalMemory> query_local_memory(std::string_view driver, const std::string& node);

// Whether the effective capabilities in the text of /proc/self/status hold CAP_PERFMON or CAP_SYS_ADMIN.
bool has_perfmon(std::string_view status);

}  // namespace gpuwright::device
