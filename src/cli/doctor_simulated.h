// A simulated host (--simulate) as doctor sees machines: the files that its kernel would have, for --root.
#pragma once

#include "device/snapshot.h"
#include "doctor/archive.h"
#include "sim/host.h"

namespace gpuwright::cli {

doctor::Archive simulated_machine(const sim::Host& host, const device::Snapshot& snapshot);

}  // namespace gpuwright::cli
