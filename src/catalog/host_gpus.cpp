#include "catalog/host_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace gpuwright::catalog {
namespace {

constexpr std::int64_t kMaxAttributeBytes = 64 << 10;  // sysfs attributes report a page as their size

struct Vendor {
  std::uint16_t id;
  std::string_view name;
  bool computes;
};
// Names of pci.ids.
constexpr std::array kVendors = {
    Vendor{0x10de, "NVIDIA", true},      Vendor{0x1002, "AMD", true},         Vendor{0x8086, "Intel", true},
    Vendor{0x1da3, "Habana Labs", true}, Vendor{0x19e5, "Huawei", true},      Vendor{0xcabc, "Cambricon", true},
    Vendor{0x1d0f, "Amazon", true},      Vendor{0x1ae0, "Google", true},      Vendor{0x1ed5, "Moore Threads", true},
    Vendor{0x1a03, "ASPEED", false},     Vendor{0x102b, "Matrox", false},     Vendor{0x1af4, "virtio", false},
    Vendor{0x1234, "QEMU", false},       Vendor{0x1b36, "QEMU QXL", false},   Vendor{0x15ad, "VMware", false},
    Vendor{0x1414, "Hyper-V", false},    Vendor{0x80ee, "VirtualBox", false}, Vendor{0x1013, "Cirrus Logic", false},
};

const Vendor* vendor_of(std::uint16_t id) {
  const auto found =
      std::find_if(kVendors.begin(), kVendors.end(), [&](const Vendor& vendor) { return vendor.id == id; });
  return found == kVendors.end() ? nullptr : &*found;
}

// "0x10de\n"
std::optional<std::uint32_t> hexadecimal_attribute(const std::string& path) {
  const auto text = read_file(path, kMaxAttributeBytes);
  if (!text) return std::nullopt;
  std::string_view digits = trim(*text);
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::uint16_t id_attribute(const std::string& path) {
  const auto value = hexadecimal_attribute(path);
  return value && *value <= 0xffff ? static_cast<std::uint16_t>(*value) : std::uint16_t{0};
}

std::optional<Bytes> memory_attribute(const std::string& path) {
  const auto text = read_file(path, kMaxAttributeBytes);
  const auto value = text ? to_integer(trim(*text)) : std::nullopt;
  return value && *value > 0 ? std::optional(Bytes{*value}) : std::nullopt;
}

// Boards that share an id differ in their memory (RX 7900 XT and XTX).
void narrow_by_memory(HostGpu& gpu) {
  if (!gpu.memory || gpu.candidates.size() < 2) return;
  std::vector<const Accelerator*> fitting;
  for (const Accelerator* row : gpu.candidates)
    if (*gpu.memory <= row->nominal_memory && *gpu.memory >= row->nominal_memory.scaled(0.9)) fitting.push_back(row);
  if (!fitting.empty()) gpu.candidates = std::move(fitting);
}

std::string name_for(const HostGpu& gpu) {
  if (gpu.candidates.empty()) {
    const Vendor* vendor = vendor_of(gpu.id.vendor);
    return fmt::format("{} {:04x}:{:04x}", vendor != nullptr ? vendor->name : "unknown vendor", gpu.id.vendor,
                       gpu.id.device);
  }
  std::string name = gpu.candidates.front()->vendor;
  for (std::size_t i = 0; i < gpu.candidates.size(); ++i) name += (i == 0 ? " " : " or ") + gpu.candidates[i]->name;
  return name;
}

std::optional<HostGpu> read_device(const Catalog& catalog, const std::string& directory, const std::string& address) {
  const std::string path = directory + "/" + address + "/";
  const auto device_class = hexadecimal_attribute(path + "class");
  const bool wanted = device_class && (*device_class >> 16 == 0x03 || *device_class >> 8 == 0x1200);
  if (!wanted) return std::nullopt;
  HostGpu gpu;
  gpu.pci_address = address;
  gpu.id = {id_attribute(path + "vendor"), id_attribute(path + "device"), id_attribute(path + "subsystem_vendor"),
            id_attribute(path + "subsystem_device")};
  const Vendor* vendor = vendor_of(gpu.id.vendor);
  gpu.display_only = vendor != nullptr && !vendor->computes;
  gpu.memory = memory_attribute(path + "mem_info_vram_total");
  gpu.candidates = catalog.all_by_pci_id(gpu.id);
  narrow_by_memory(gpu);
  gpu.name = name_for(gpu);
  return gpu;
}

}  // namespace

HostGpus find_host_gpus(const Catalog& catalog, const std::string& root) {
  HostGpus result;
  result.looked_at = root + "/sys/bus/pci/devices";
  const auto addresses = list_directory(result.looked_at);
  if (!addresses) return result;
  result.pci_devices = static_cast<int>(addresses->size());
  for (const std::string& address : *addresses)
    if (auto gpu = read_device(catalog, result.looked_at, address)) result.gpus.push_back(std::move(*gpu));
  return result;
}

std::string pci_vendor_name(std::uint16_t vendor) {
  const Vendor* known = vendor_of(vendor);
  return known != nullptr && known->computes ? std::string(known->name) : std::string();
}

}  // namespace gpuwright::catalog
