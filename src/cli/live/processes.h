// What the commands say of processes: where one runs, in which order they are shown.
#pragma once

#include <string>
#include <vector>

#include "device/snapshot.h"

namespace gpuwright::cli {

// "pod ml/train-0", "slurm 4711", "docker 3f2a91c0b7de", a systemd unit; empty for a plain login.
std::string place_of(const device::Process& process);
// "C", "G", "C+G", "M+C" as nvidia-smi has them.
std::string kind_text(const device::Process& process);
// By GPU, then those that hold most memory first.
std::vector<const device::Process*> in_order(const device::Snapshot& snapshot);
// Unattributed memory below this is the driver's small change and gets no row.
inline constexpr Bytes kWorthARow = Bytes{64ll << 20};

}  // namespace gpuwright::cli
