// Snapshots made by hand, for the tests of what is printed of them.
#pragma once

#include <string>

#include "device/snapshot.h"

namespace gpuwright::cli::testing {

// Two GPUs and three processes at 2026-11-30 21:00:00 UTC: GPU 0 busy with alice's training in a pod, GPU 1 idle but
// with memory held.
device::Snapshot two_gpus();
// As many copies of a busy one.
device::Snapshot many_gpus(int count);
device::Gpu busy_gpu(int index);
device::Process training_process(int gpu, std::int64_t pid);

}  // namespace gpuwright::cli::testing
