// PCIe and NVLink: what the links could do, do now, and have carried.
#include <cmath>

#include "sim/nvml/call.h"
#include "sim/nvml/links.h"

namespace gpuwright::sim {
namespace {

using calls::measure;
using calls::tell;
using nvml::Return;

// What the catalogue does not know is 0.
std::optional<int> known(int value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

// A call about one link: links that the device does not have are invalid, devices without any do not support it.
template <class Value, class Answer>
Return for_link(const char* function, nvml::Device device, unsigned link, Value* value, Answer&& answer) {
  if (value == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(function, device, [&](const GpuView& gpu) {
    if (gpu.spec().nvlinks == 0) return nvml::kNotSupported;
    if (link >= static_cast<unsigned>(gpu.spec().nvlinks)) return nvml::kInvalidArgument;
    return answer(gpu);
  });
}

// The switches of an HGX board: four, on the first free buses, and the links are spread over them.
constexpr unsigned kSwitches = 4, kFirstSwitchBus = 7;
constexpr unsigned kSwitchDevice = 0x22a3;  // NVSwitch of the third generation, pci.ids

Return remote_pci_info(const char* function, nvml::Device device, unsigned link, nvml::PciInfo* info) {
  return for_link(function, device, link, info, [&](const GpuView& gpu) {
    if (gpu.spec().nvlink == NvlinkShape::none) return nvml::kNotSupported;
    *info = {};
    const auto peer = link_peer(gpu, static_cast<int>(link));
    unsigned domain = 0, bus = kFirstSwitchBus + link % kSwitches, pci_device = 0, id = kSwitchDevice;
    if (peer) {
      const GpuSpec& other = gpu.scenario().gpus[static_cast<std::size_t>(*peer)];
      domain = other.pci_domain;
      bus = other.pci_bus;
      pci_device = other.pci_device;
      id = other.facts->pci_ids.empty() ? 0U : other.facts->pci_ids.front().device;
    }
    info->domain = domain;
    info->bus = bus;
    info->device = pci_device;
    info->pci_device_id = id << 16 | 0x10de;
    write_addresses(domain, bus, pci_device, *info);
    return nvml::kSuccess;
  });
}

}  // namespace

std::optional<int> link_peer(const GpuView& gpu, int link) {
  const int count = static_cast<int>(gpu.scenario().gpus.size());
  switch (gpu.spec().nvlink) {
    case NvlinkShape::pairs: {
      const int peer = gpu.index() ^ 1;
      return peer < count ? std::optional(peer) : std::nullopt;
    }
    case NvlinkShape::mesh: {
      if (count < 2) return std::nullopt;
      return (gpu.index() + 1 + link % (count - 1)) % count;
    }
    default:
      return std::nullopt;
  }
}

bool link_active(const GpuView& gpu, int link) {
  if (gpu.spec().nvlink == NvlinkShape::none || link >= gpu.spec().nvlinks) return false;
  return gpu.spec().nvlink == NvlinkShape::nvswitch || link_peer(gpu, link).has_value();
}

int links_between(const GpuView& gpu, int other) {
  int count = 0;
  for (int link = 0; link < gpu.spec().nvlinks; ++link)
    if (link_active(gpu, link) && (gpu.spec().nvlink == NvlinkShape::nvswitch || link_peer(gpu, link) == other))
      ++count;
  return count;
}

int nvlink_version(const GpuSpec& spec) {
  switch (spec.compute_major) {
    case 6:
      return 1;
    case 7:
      return 2;
    case 8:
      return 3;
    case 9:
      return 4;
    default:
      return 5;
  }
}

double link_mb_per_second(const GpuSpec& spec) {
  return spec.nvlinks > 0 ? spec.facts->nvlink_gb_per_second.value_or(0) * 1000 / 2 / spec.nvlinks : 0;
}

Return nvmlDeviceGetCurrPcieLinkGeneration(nvml::Device device, unsigned* generation) {
  return measure(__func__, device, generation, [](const GpuView& gpu) {
    const bool saves_power = gpu.performance_state() != 0 && !gpu.spec().unified_memory();
    return known(saves_power ? 1 : gpu.spec().pcie_generation);
  });
}
Return nvmlDeviceGetMaxPcieLinkGeneration(nvml::Device device, unsigned* generation) {
  return tell(__func__, device, generation, [](const GpuView& gpu) { return known(gpu.spec().pcie_generation); });
}
Return nvmlDeviceGetGpuMaxPcieLinkGeneration(nvml::Device device, unsigned* generation) {
  return tell(__func__, device, generation, [](const GpuView& gpu) { return known(gpu.spec().pcie_generation_max); });
}
Return nvmlDeviceGetCurrPcieLinkWidth(nvml::Device device, unsigned* width) {
  return measure(__func__, device, width, [](const GpuView& gpu) { return known(gpu.spec().pcie_width); });
}
Return nvmlDeviceGetMaxPcieLinkWidth(nvml::Device device, unsigned* width) {
  return tell(__func__, device, width, [](const GpuView& gpu) { return known(gpu.spec().pcie_width_max); });
}

Return nvmlDeviceGetPcieThroughput(nvml::Device device, nvml::PcieCounter counter, unsigned* kilobytes) {
  if (counter != nvml::kPcieSent && counter != nvml::kPcieReceived) return nvml::kInvalidArgument;
  return measure(__func__, device, kilobytes, [&](const GpuView& gpu) {
    const Curve& curve = counter == nvml::kPcieSent ? gpu.spec().pcie_sent : gpu.spec().pcie_received;
    return gpu.spec().unified_memory() ? std::nullopt : std::optional(std::lround(gpu.rate(curve) / 1000));
  });
}

Return nvmlDeviceGetPcieReplayCounter(nvml::Device device, unsigned* count) {
  return tell(__func__, device, count,
              [](const GpuView& gpu) { return gpu.spec().unified_memory() ? std::nullopt : std::optional(0); });
}

Return nvmlDeviceGetNvLinkState(nvml::Device device, unsigned link, nvml::EnableState* active) {
  return for_link(__func__, device, link, active, [&](const GpuView& gpu) {
    *active = link_active(gpu, static_cast<int>(link)) ? 1 : 0;
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetNvLinkVersion(nvml::Device device, unsigned link, unsigned* version) {
  return for_link(__func__, device, link, version, [&](const GpuView& gpu) {
    *version = static_cast<unsigned>(nvlink_version(gpu.spec()));
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetNvLinkCapability(nvml::Device device, unsigned link, nvml::NvLinkCapability, unsigned* has) {
  return for_link(__func__, device, link, has, [&](const GpuView&) {
    *has = 1;
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetNvLinkRemotePciInfo(nvml::Device device, unsigned link, nvml::PciInfo* info) {
  return remote_pci_info(__func__, device, link, info);
}
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml::Device device, unsigned link, nvml::PciInfo* info) {
  return remote_pci_info(__func__, device, link, info);
}

Return nvmlDeviceGetNvLinkRemoteDeviceType(nvml::Device device, unsigned link, nvml::NvLinkDeviceType* type) {
  return for_link(__func__, device, link, type, [&](const GpuView& gpu) {
    if (!link_active(gpu, static_cast<int>(link))) return nvml::kNotSupported;
    *type = link_peer(gpu, static_cast<int>(link)) ? nvml::kNvLinkGpu : nvml::kNvLinkSwitch;
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetNvLinkErrorCounter(nvml::Device device, unsigned link, int, unsigned long long* count) {
  return for_link(__func__, device, link, count, [&](const GpuView&) {
    *count = 0;
    return nvml::kSuccess;
  });
}

}  // namespace gpuwright::sim
