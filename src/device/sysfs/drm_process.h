// From what fdinfo tells of a process to a row of the snapshot.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "device/snapshot.h"
#include "device/sysfs/fdinfo.h"

namespace gpuwright::device {

// A row with nothing but the pid, which is that of `root`/proc: this machine's /proc shows this program's namespace.
Process drm_process(const DrmProcess& found, int gpu, const std::string& root);

// The sum of the regions whose names begin so ("vram" takes vram0 and vram1); nothing when none is told.
std::optional<Bytes> memory_in(const DrmProcess& found, std::initializer_list<std::string_view> regions);

// The busiest of the engines, not_supported when the driver tells of none of them.
Reading<Ratio> busiest(const DrmProcess& found, std::initializer_list<std::string_view> engines);

// Readings of the GPU's side of a process that nobody set.
void explain_unread(Process& process, Why why);

}  // namespace gpuwright::device
