// Many values by one trip to the driver: nvmlDeviceGetFieldValues, whose every value has a code of its own.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "device/nvml/answer.h"
#include "device/nvml/asker.h"

namespace gpuwright::device::nvidia {

class FieldBatch {
 public:
  void want(std::initializer_list<unsigned> ids, unsigned scope = 0);
  void ask(Asker& ask, nvml::Device device);

  // kFunctionNotFound for a field that was not asked for.
  nvml::Return code(unsigned id, unsigned scope = 0) const { return find(id, scope).result; }
  Reading<std::uint64_t> number(unsigned id, unsigned scope = 0) const;
  Reading<std::int64_t> count(unsigned id) const;
  Reading<bool> flag(unsigned id) const;
  // How many bits the driver counts in.
  int bits(unsigned id, unsigned scope = 0) const;

 private:
  const nvml::FieldValue& find(unsigned id, unsigned scope) const;

  std::vector<nvml::FieldValue> values_;
};

}  // namespace gpuwright::device::nvidia
