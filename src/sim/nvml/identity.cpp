// What a device is: names, numbers, its place on the bus, its modes.
#include <fmt/format.h>

#include <algorithm>

#include "sim/nvml/call.h"

namespace gpuwright::sim {
namespace {

using calls::for_device;
using calls::tell;
using calls::tell_text;
using nvml::Return;

unsigned architecture_of(const GpuSpec& gpu) {
  switch (gpu.compute_major) {
    case 3:
      return nvml::kKepler;
    case 5:
      return nvml::kMaxwell;
    case 6:
      return nvml::kPascal;
    case 7:
      return gpu.compute_minor >= 5 ? nvml::kTuring : nvml::kVolta;
    case 8:
      return gpu.compute_minor == 9 ? nvml::kAda : nvml::kAmpere;
    case 9:
      return nvml::kHopper;
    case 10:
    case 11:
    case 12:
      return nvml::kBlackwell;
    default:
      return nvml::kArchitectureUnknown;
  }
}

int brand_of(const GpuSpec& gpu) {
  if (gpu.name.find("GeForce") != std::string::npos) return nvml::kBrandGeForce;
  if (gpu.name.find("TITAN") != std::string::npos) return nvml::kBrandTitan;
  if (gpu.name.find("Tesla") != std::string::npos) return nvml::kBrandTesla;
  if (gpu.name.find("Quadro") != std::string::npos) return nvml::kBrandQuadro;
  return gpu.facts->family == "workstation" ? nvml::kBrandNvidiaRtx : nvml::kBrandNvidia;
}

// FP32 lanes of an SM ("CUDA cores"): CUDA C++ Programming Guide, arithmetic instructions by compute capability.
unsigned cores_of(const GpuSpec& gpu) {
  const bool wide = gpu.compute_major == 5 || (gpu.compute_major == 6 && gpu.compute_minor > 0) ||
                    (gpu.compute_major == 8 && gpu.compute_minor > 0) || gpu.compute_major >= 9;
  const int lanes = wide ? 128 : 64;
  return static_cast<unsigned>(gpu.facts->multiprocessors.value_or(0) * lanes);
}

// Before the third version the long address is missing, and before the second the subsystem.
Return pci_info(const char* function, nvml::Device device, nvml::PciInfo* info, int version) {
  if (info == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(function, device, [&](const GpuView& gpu) {
    const GpuSpec& spec = gpu.spec();
    if (version >= 3) *info = {};
    info->domain = spec.pci_domain;
    info->bus = spec.pci_bus;
    info->device = spec.pci_device;
    if (!spec.facts->pci_ids.empty()) {
      const catalog::PciId& id = spec.facts->pci_ids.front();
      info->pci_device_id = static_cast<unsigned>(id.device) << 16 | id.vendor;
      if (version >= 2) info->pci_subsystem_id = static_cast<unsigned>(id.subsystem_device) << 16 | id.subsystem_vendor;
    }
    const std::string legacy =
        fmt::format("{:04X}:{:02X}:{:02X}.0", spec.pci_domain & 0xffff, spec.pci_bus, spec.pci_device);
    static_cast<void>(calls::copy_text(legacy, info->bus_id_legacy, sizeof info->bus_id_legacy));
    if (version >= 3) static_cast<void>(calls::copy_text(spec.pci_address, info->bus_id, sizeof info->bus_id));
    return nvml::kSuccess;
  });
}

// A bit for each CPU, or each NUMA node, near the device.
Return affinity(const char* function, nvml::Device device, unsigned words, unsigned long* set, bool of_nodes) {
  if (set == nullptr || words == 0) return nvml::kInvalidArgument;
  return calls::for_device(function, device, [&](const GpuView& gpu) {
    std::fill_n(set, words, 0UL);
    const Scenario& scenario = gpu.scenario();
    const int node = gpu.spec().numa_node;
    const int first = of_nodes ? node : scenario.cpus * node / scenario.numa_nodes;
    const int end = of_nodes ? node + 1 : scenario.cpus * (node + 1) / scenario.numa_nodes;
    for (int bit = first; bit < end && bit / 64 < static_cast<int>(words); ++bit) set[bit / 64] |= 1UL << (bit % 64);
    return nvml::kSuccess;
  });
}

// WDDM or TCC: Windows alone knows such things.
Return driver_model(const char* function, nvml::Device device, const int* current, const int* pending) {
  if (current == nullptr || pending == nullptr) return nvml::kInvalidArgument;
  return calls::for_gpu(function, device, [](const GpuView&) { return nvml::kNotSupported; });
}

}  // namespace

Return nvmlDeviceGetName(nvml::Device device, char* name, unsigned size) {
  return tell_text(__func__, device, name, size, [](const GpuView& gpu) {
    return gpu.instance() == nullptr ? gpu.spec().name
                                     : fmt::format("{} MIG {}", gpu.spec().name, gpu.instance()->profile.name);
  });
}

Return nvmlDeviceGetUUID(nvml::Device device, char* uuid, unsigned size) {
  return tell_text(__func__, device, uuid, size, [](const GpuView& gpu) {
    return gpu.instance() == nullptr ? gpu.spec().uuid : gpu.instance()->uuid;
  });
}

Return nvmlDeviceGetSerial(nvml::Device device, char* serial, unsigned size) {
  return tell_text(__func__, device, serial, size, [](const GpuView& gpu) { return gpu.spec().serial; });
}

Return nvmlDeviceGetVbiosVersion(nvml::Device device, char* version, unsigned size) {
  return tell_text(__func__, device, version, size, [](const GpuView& gpu) { return gpu.spec().vbios; });
}

Return nvmlDeviceGetBoardPartNumber(nvml::Device device, char* number, unsigned size) {
  return tell_text(__func__, device, number, size, [](const GpuView&) { return std::string(); });
}

Return nvmlDeviceGetInforomVersion(nvml::Device device, int, char* version, unsigned size) {
  return tell_text(__func__, device, version, size, [](const GpuView&) { return std::string(); });
}

Return nvmlDeviceGetInforomImageVersion(nvml::Device device, char* version, unsigned size) {
  return tell_text(__func__, device, version, size, [](const GpuView&) { return std::string(); });
}

Return nvmlDeviceGetIndex(nvml::Device device, unsigned* index) {
  if (index == nullptr) return nvml::kInvalidArgument;
  return for_device(__func__, device, [&](const GpuView& gpu) {
    *index = static_cast<unsigned>(gpu.instance() == nullptr ? gpu.index() : gpu.instance_position());
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetMinorNumber(nvml::Device device, unsigned* minor) {
  return tell(__func__, device, minor, [](const GpuView& gpu) { return std::optional(gpu.index()); });
}

Return nvmlDeviceGetBrand(nvml::Device device, nvml::Brand* brand) {
  return tell(__func__, device, brand, [](const GpuView& gpu) { return std::optional(brand_of(gpu.spec())); });
}

Return nvmlDeviceGetArchitecture(nvml::Device device, unsigned* architecture) {
  return tell(__func__, device, architecture,
              [](const GpuView& gpu) { return std::optional(architecture_of(gpu.spec())); });
}

Return nvmlDeviceGetCudaComputeCapability(nvml::Device device, int* major, int* minor) {
  if (major == nullptr || minor == nullptr) return nvml::kInvalidArgument;
  return for_device(__func__, device, [&](const GpuView& gpu) {
    *major = gpu.spec().compute_major;
    *minor = gpu.spec().compute_minor;
    return nvml::kSuccess;
  });
}

Return nvmlDeviceGetNumGpuCores(nvml::Device device, unsigned* cores) {
  return tell(__func__, device, cores, [](const GpuView& gpu) {
    const unsigned number = cores_of(gpu.spec());
    return number > 0 ? std::optional(number) : std::nullopt;
  });
}

Return nvmlDeviceGetBoardId(nvml::Device device, unsigned* board) {
  return tell(__func__, device, board, [](const GpuView& gpu) { return std::optional(gpu.spec().pci_bus << 8); });
}

Return nvmlDeviceGetMultiGpuBoard(nvml::Device device, unsigned* several) {
  return tell(__func__, device, several,
              [](const GpuView& gpu) { return std::optional(gpu.spec().facts->devices_per_board > 1 ? 1 : 0); });
}

Return nvmlDeviceGetPciInfo(nvml::Device device, nvml::PciInfo* info) {
  return pci_info(__func__, device, info, 1);
}
Return nvmlDeviceGetPciInfo_v2(nvml::Device device, nvml::PciInfo* info) {
  return pci_info(__func__, device, info, 2);
}
Return nvmlDeviceGetPciInfo_v3(nvml::Device device, nvml::PciInfo* info) {
  return pci_info(__func__, device, info, 3);
}

Return nvmlDeviceGetNumaNodeId(nvml::Device device, unsigned* node) {
  return tell(__func__, device, node, [](const GpuView& gpu) { return std::optional(gpu.spec().numa_node); });
}

Return nvmlDeviceGetCpuAffinity(nvml::Device device, unsigned words, unsigned long* set) {
  return affinity(__func__, device, words, set, false);
}
Return nvmlDeviceGetCpuAffinityWithinScope(nvml::Device device, unsigned words, unsigned long* set, unsigned) {
  return affinity(__func__, device, words, set, false);
}
Return nvmlDeviceGetMemoryAffinity(nvml::Device device, unsigned words, unsigned long* set, unsigned) {
  return affinity(__func__, device, words, set, true);
}

Return nvmlDeviceGetPersistenceMode(nvml::Device device, nvml::EnableState* mode) {
  return tell(__func__, device, mode, [](const GpuView& gpu) { return std::optional(gpu.spec().persistence); });
}
Return nvmlDeviceGetDisplayMode(nvml::Device device, nvml::EnableState* mode) {
  return tell(__func__, device, mode, [](const GpuView& gpu) { return std::optional(gpu.spec().display); });
}
Return nvmlDeviceGetDisplayActive(nvml::Device device, nvml::EnableState* active) {
  return tell(__func__, device, active, [](const GpuView& gpu) { return std::optional(gpu.spec().display); });
}
Return nvmlDeviceGetComputeMode(nvml::Device device, nvml::ComputeMode* mode) {
  return tell(__func__, device, mode, [](const GpuView& gpu) { return std::optional(gpu.spec().compute_mode); });
}

Return nvmlDeviceGetDriverModel(nvml::Device device, int* current, int* pending) {
  return driver_model(__func__, device, current, pending);
}
Return nvmlDeviceGetDriverModel_v2(nvml::Device device, int* current, int* pending) {
  return driver_model(__func__, device, current, pending);
}

}  // namespace gpuwright::sim
