// Who a GPU is and what its limits are: asked once, as long as its handle is good.
#include <fmt/format.h>

#include <array>

#include "device/nvml/card.h"

namespace gpuwright::device::nvidia {
namespace {

template <unsigned size>
Reading<std::string> name_like(CardAsker& ask, const Function<nvml::Return(nvml::Device, char*, unsigned)>& function) {
  std::array<char, size> buffer{};
  const nvml::Return code = ask(function, buffer.data(), size);
  return text(code, buffer.data(), buffer.size());
}

Reading<std::string> architecture_name(nvml::Return code, unsigned architecture) {
  if (code != nvml::kSuccess) return why_of(code);
  switch (architecture) {
    case nvml::kKepler:
      return std::string("Kepler");
    case nvml::kMaxwell:
      return std::string("Maxwell");
    case nvml::kPascal:
      return std::string("Pascal");
    case nvml::kVolta:
      return std::string("Volta");
    case nvml::kTuring:
      return std::string("Turing");
    case nvml::kAmpere:
      return std::string("Ampere");
    case nvml::kAda:
      return std::string("Ada Lovelace");
    case nvml::kHopper:
      return std::string("Hopper");
    case nvml::kBlackwell:
      return std::string("Blackwell");
    case nvml::kRubin:
      return std::string("Rubin");
    default:
      return Why::no_data;
  }
}

void read_identity(Card& card, CardAsker& ask) {
  const Functions& f = ask.functions();
  Gpu& gpu = card.facts;
  gpu.name = name_like<nvml::kNameSize>(ask, f.nvmlDeviceGetName);
  gpu.uuid = name_like<nvml::kUuidSize>(ask, f.nvmlDeviceGetUUID);
  gpu.serial = name_like<nvml::kSerialSize>(ask, f.nvmlDeviceGetSerial);
  gpu.vbios = name_like<nvml::kVbiosSize>(ask, f.nvmlDeviceGetVbiosVersion);
  unsigned architecture = nvml::kArchitectureUnknown;
  const nvml::Return code = ask(f.nvmlDeviceGetArchitecture, &architecture);
  if (code == nvml::kSuccess) card.architecture = architecture;
  gpu.architecture = architecture_name(code, architecture);
  int major = 0, minor = 0;
  const nvml::Return told = ask(f.nvmlDeviceGetCudaComputeCapability, &major, &minor);
  if (told == nvml::kSuccess)
    gpu.compute_capability = fmt::format("{}.{}", major, minor);
  else
    gpu.compute_capability = why_of(told);
  unsigned node = 0;
  const nvml::Return numbered = ask(f.nvmlDeviceGetMinorNumber, &node);
  gpu.device_minor = count32(numbered, node);
}

void read_address(Card& card, CardAsker& ask, const HostFiles& files) {
  const Functions& f = ask.functions();
  Gpu& gpu = card.facts;
  nvml::PciInfo pci{};
  nvml::Return code = ask(f.nvmlDeviceGetPciInfo_v3, &pci);
  if (try_the_older(code)) code = ask(f.nvmlDeviceGetPciInfo_v2, &pci);
  if (try_the_older(code)) {
    code = ask(f.nvmlDeviceGetPciInfo, &pci);
    pci.bus_id[0] = '\0';  // version 1 ends before it
  }
  if (code != nvml::kSuccess) {
    gpu.pci_address = gpu.pci_id = why_of(code);
  } else {
    gpu.pci_address = fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
    gpu.pci_id = fmt::format("{:04x}:{:04x}", pci.pci_device_id & 0xFFFF, pci.pci_device_id >> 16);
    if (pci.bus_id[0] != '\0')
      if (const auto whole = text(code, pci.bus_id, sizeof pci.bus_id)) gpu.pci_address = short_address(*whole);
  }
  gpu.numa_node = gpu.pci_address ? files.numa_node(*gpu.pci_address) : Reading<std::int64_t>(Why::no_data);
  if (!gpu.numa_node) {
    unsigned node = 0;
    if (ask(f.nvmlDeviceGetNumaNodeId, &node) == nvml::kSuccess) gpu.numa_node = count32(nvml::kSuccess, node);
  }
}

void read_limits(Card& card, CardAsker& ask) {
  const Functions& f = ask.functions();
  Gpu& gpu = card.facts;
  const auto clock = [&](nvml::ClockType type) {
    unsigned value = 0;
    const nvml::Return code = ask(f.nvmlDeviceGetMaxClockInfo, type, &value);
    return megahertz(code, value);
  };
  gpu.sm_clock_max = clock(nvml::kClockSm);
  gpu.graphics_clock_max = clock(nvml::kClockGraphics);
  gpu.memory_clock_max = clock(nvml::kClockMemory);
  unsigned low = 0, high = 0;
  nvml::Return code = ask(f.nvmlDeviceGetPowerManagementDefaultLimit, &low);
  gpu.power_limit_default = milliwatts(code, low);
  code = ask(f.nvmlDeviceGetPowerManagementLimitConstraints, &low, &high);
  gpu.power_limit_min = milliwatts(code, low);
  gpu.power_limit_max = milliwatts(code, high);
  const auto threshold = [&](nvml::TemperatureThreshold which) {
    unsigned value = 0;
    const nvml::Return told = ask(f.nvmlDeviceGetTemperatureThreshold, which, &value);
    return degrees(told, static_cast<int>(value));
  };
  gpu.temperature_slowdown = threshold(nvml::kThresholdSlowdown);
  gpu.temperature_shutdown = threshold(nvml::kThresholdShutdown);
  const auto number = [&](const Function<nvml::Return(nvml::Device, unsigned*)>& function) {
    unsigned value = 0;
    const nvml::Return told = ask(function, &value);
    return count32(told, value);
  };
  gpu.pcie_generation_max = number(f.nvmlDeviceGetMaxPcieLinkGeneration);
  gpu.pcie_width_max = number(f.nvmlDeviceGetMaxPcieLinkWidth);
}

}  // namespace

void read_facts(Card& card, CardAsker& ask, const HostFiles& files) {
  card.facts = Gpu{};
  card.facts.index = card.facts.vendor_index = card.index;
  card.facts.vendor = Vendor::nvidia;
  card.facts.source = "nvml";
  card.facts.host_used = card.facts.gtt_total = card.facts.gtt_used = Why::not_supported;
  card.facts.vram_total = card.facts.vram_used = Why::not_supported;
  read_identity(card, ask);
  if (ask.fine()) read_address(card, ask, files);
  if (ask.fine()) read_limits(card, ask);
  card.has_facts = ask.fine() && !ask.plain().late();
  card.row = card.facts;
}

}  // namespace gpuwright::device::nvidia
