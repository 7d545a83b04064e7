#include "catalog/accelerator.h"

namespace gpuwright::catalog {

Bytes Accelerator::usable() const {
  return usable_memory.value_or(nominal_memory);
}

}  // namespace gpuwright::catalog
