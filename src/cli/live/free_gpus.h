// Which GPUs are free, by what a person means with that word, and what to tell a program so that it takes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/snapshot.h"

namespace gpuwright::cli {

struct FreeRules {
  // So much memory must be free. Nothing: nearly all of it (95 %), and no computing process may be there.
  std::optional<Bytes> memory;
  double utilization = 0.10;  // at most
  bool exclusive = false;     // with `memory`: still no process of another user
  std::string user = {};      // who asks
};

struct Judged {
  const device::Gpu* gpu = nullptr;
  std::string obstacle;  // why it is not free; empty = it is
};
// All GPUs of the snapshot, in its order.
std::vector<Judged> judge(const device::Snapshot& snapshot, const FreeRules& rules);

// The free ones with most free memory first, then those that are least used; all of one vendor, as a program takes one
// kind. At most `count`; in the order of their numbers.
std::vector<const device::Gpu*> choose(const std::vector<Judged>& judged, std::optional<std::size_t> count);

// "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,3": words for `export` or `env`. Numbers rather than UUIDs, as
// not every program reads those. AMD: HIP_VISIBLE_DEVICES, Intel: ZE_AFFINITY_MASK, Ascend: ASCEND_RT_VISIBLE_DEVICES.
std::string visible_devices(const device::Snapshot& snapshot, const std::vector<const device::Gpu*>& gpus,
                            bool by_uuid);

}  // namespace gpuwright::cli
