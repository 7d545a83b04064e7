// Rolling columns as people know them from `nvidia-smi dmon` and `nvidia-smi pmon`: titles, order, units and widths are
// theirs, so that what reads those reads these.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "device/snapshot.h"

namespace gpuwright::cli {

// Groups of columns of dmon: p power and temperature, u utilisation, c clocks, m memory, e ECC and PCIe replays,
// t PCIe traffic. Of pmon: u utilisation, m memory.
inline constexpr std::string_view kGpuGroups = "puc", kProcessGroups = "u";
Status check_gpu_groups(std::string_view groups);
Status check_process_groups(std::string_view groups);

// The columns stand in the order in which the groups are named, as there.
// Two lines of titles and units, and then a line a GPU or process. "-" stands for what is not known.
std::string gpu_stream_header(std::string_view groups);
std::string gpu_stream_lines(const device::Snapshot& snapshot, std::string_view groups);
std::string process_stream_header(std::string_view groups);
std::string process_stream_lines(const device::Snapshot& snapshot, std::string_view groups);

}  // namespace gpuwright::cli
