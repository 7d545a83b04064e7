// How near the GPUs are to each other.
#include <fmt/format.h>

#include <algorithm>

#include "sim/nvml/call.h"
#include "sim/nvml/links.h"

namespace gpuwright::sim {
namespace {

using nvml::Return;

// Neighbours (0 and 1, 2 and 3, ...) share a PCIe switch where the machine is a server with several of them.
nvml::TopologyLevel level_between(const GpuView& a, const GpuView& b) {
  if (a.spec().numa_node != b.spec().numa_node) return nvml::kTopologySystem;
  const bool server = a.spec().facts->family == "datacenter" && a.scenario().gpus.size() > 2;
  if (server && a.index() / 2 == b.index() / 2) return nvml::kTopologySingle;
  return server ? nvml::kTopologyNode : nvml::kTopologyHostBridge;
}

template <class Answer>
Return for_pair(const char* function, nvml::Device one, nvml::Device other, Answer&& answer) {
  return calls::for_gpu(function, one, [&](const GpuView& a) {
    const calls::Decoded where = calls::decode(other);
    if (where.gpu < 0 || static_cast<std::size_t>(where.gpu) >= a.scenario().gpus.size()) return nvml::kInvalidArgument;
    const GpuView b(a.host(), where.gpu, -1, a.time());
    if (const Return code = calls::code_of(b.condition()); code != nvml::kSuccess) return code;
    return answer(a, b);
  });
}

}  // namespace

void write_addresses(unsigned domain, unsigned bus, unsigned device, nvml::PciInfo& info) {
  const std::string legacy = fmt::format("{:04X}:{:02X}:{:02X}.0", domain & 0xffff, bus & 0xff, device & 0xff);
  const std::string address = fmt::format("{:08X}:{:02X}:{:02X}.0", domain, bus & 0xff, device & 0xff);
  static_cast<void>(calls::copy_text(legacy, info.bus_id_legacy, sizeof info.bus_id_legacy));
  static_cast<void>(calls::copy_text(address, info.bus_id, sizeof info.bus_id));
}

Return nvmlDeviceGetTopologyCommonAncestor(nvml::Device one, nvml::Device other, nvml::TopologyLevel* level) {
  if (level == nullptr) return nvml::kInvalidArgument;
  return for_pair(__func__, one, other, [&](const GpuView& a, const GpuView& b) {
    *level = a.index() == b.index() ? nvml::kTopologyInternal : level_between(a, b);
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetTopologyNearestGpus(nvml::Device device, nvml::TopologyLevel level, unsigned* count,
                                        nvml::Device* devices) {
  if (count == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(__func__, device, [&](const GpuView& gpu) {
    std::vector<int> near;
    for (int other = 0; other < static_cast<int>(gpu.scenario().gpus.size()); ++other) {
      const GpuView view(gpu.host(), other, -1, gpu.time());
      if (other != gpu.index() && level_between(gpu, view) == level) near.push_back(other);
    }
    const auto room = static_cast<std::size_t>(*count);
    *count = static_cast<unsigned>(near.size());
    if (devices == nullptr) return nvml::kSuccess;
    *count = static_cast<unsigned>(std::min(near.size(), room));
    for (unsigned i = 0; i < *count; ++i) devices[i] = calls::handle_of(near[i], -1);
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetP2PStatus(nvml::Device one, nvml::Device other, nvml::P2pCapability capability,
                              nvml::P2pStatus* status) {
  if (status == nullptr) return nvml::kInvalidArgument;
  return for_pair(__func__, one, other, [&](const GpuView& a, const GpuView& b) {
    if (capability < nvml::kP2pRead || capability > nvml::kP2pPci) return nvml::kInvalidArgument;
    const bool linked = links_between(a, b.index()) > 0;
    const bool over_pcie = a.spec().facts->family != "consumer" && level_between(a, b) != nvml::kTopologySystem;
    const bool possible = capability == nvml::kP2pNvLink ? linked : linked || over_pcie;
    *status = possible ? nvml::kP2pOk : nvml::kP2pNotSupported;
    return nvml::kSuccess;
  });
}

}  // namespace gpuwright::sim
