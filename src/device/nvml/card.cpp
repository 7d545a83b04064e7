#include "device/nvml/card.h"

namespace gpuwright::device::nvidia {

bool due(const std::optional<std::int64_t>& last_ns, std::int64_t now_ns, std::int64_t period_ns) {
  return !last_ns || now_ns < *last_ns || now_ns - *last_ns >= period_ns;
}

void Card::adopt(Card&& before) {
  pcie_sent = before.pcie_sent;
  pcie_received = before.pcie_received;
  link_sent = before.link_sent;
  link_received = before.link_received;
  link_counters = before.link_counters;
  link_count = before.link_count;
  last_sample_us = before.last_sample_us;
  samples = std::move(before.samples);
}

}  // namespace gpuwright::device::nvidia
