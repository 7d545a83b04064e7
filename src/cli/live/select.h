// --gpu SELECT: which GPUs of a snapshot are meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/snapshot.h"

namespace gpuwright::cli {

// "0", "0,2-3", "GPU-5f1c" (the beginning of a UUID), "0000:81:00.0" or its end "81:00.0", "h100" (part of a name).
// Several are joined by commas. Gives positions in snapshot.gpus, ascending; not_found names what there is.
Result<std::vector<std::size_t>> select_gpus(const device::Snapshot& snapshot, std::string_view selection);

// Leaves only these GPUs, with their processes. Indices stay as they were.
void keep_only(device::Snapshot& snapshot, const std::vector<std::size_t>& positions);

}  // namespace gpuwright::cli
