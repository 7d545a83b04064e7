// By which numbers CUDA knows the GPUs of a host.
#pragma once

#include <vector>

#include "device/snapshot.h"

namespace gpuwright::device {

struct CudaNumbers {
  Reading<std::int64_t> by_bus, by_speed;  // CUDA_DEVICE_ORDER=PCI_BUS_ID, and the default FASTEST_FIRST
};
// One for each of the GPUs, when CUDA may see all. Of unlike GPUs CUDA does not document which it takes for faster, so
// the default order of those is no_data; so is whatever comes after a GPU that does not answer, as drivers differ in
// whether that one is counted.
std::vector<CudaNumbers> cuda_numbers(const std::vector<Gpu>& gpus);

}  // namespace gpuwright::device
