#include "doctor/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "doctor/nvidia_driver.h"
#include "doctor/software.h"
#include "doctor/surroundings.h"

namespace gpuwright::doctor {
namespace {

constexpr std::string_view kDevices = "/sys/bus/pci/devices";
constexpr std::size_t kMostDevices = 65536, kMostGpus = 256;

device::Vendor vendor_of(std::uint16_t id) {
  switch (id) {
    case 0x10de:
      return device::Vendor::nvidia;
    case 0x1002:
      return device::Vendor::amd;
    case 0x8086:
      return device::Vendor::intel;
    case 0x19e5:
      return device::Vendor::huawei;
    default:
      return device::Vendor::unknown;
  }
}

// The facts in which the rows agree that may be the device.
void name_by_rows(const std::vector<const catalog::Accelerator*>& rows, PciGpu& gpu) {
  gpu.name = fmt::format("{} GPU {}", to_string(gpu.vendor), catalog::to_string({gpu.id.vendor, gpu.id.device, 0, 0}));
  if (rows.empty()) return;
  const catalog::Accelerator& first = *rows.front();
  const auto agree = [&](auto field) {
    return std::all_of(rows.begin(), rows.end(), [&](const auto* row) { return row->*field == first.*field; });
  };
  if (rows.size() == 1) gpu.accelerator = &first;
  gpu.name = rows.size() == 1 ? first.name : fmt::format("{} (or another of its kind)", first.name);
  if (agree(&catalog::Accelerator::architecture)) gpu.architecture = first.architecture;
  if (agree(&catalog::Accelerator::compute_capability)) gpu.compute_capability = first.compute_capability.value_or("");
}

std::optional<PciGpu> read_gpu(const Host& host, const catalog::Catalog& catalog, const std::string& address) {
  PciGpu gpu;
  gpu.address = address;
  const auto device_class = host.integer(gpu.path("class"));
  constexpr std::int64_t kDisplay = 0x03, kAccelerator = 0x12;
  if (!device_class || ((*device_class >> 16) != kDisplay && (*device_class >> 16) != kAccelerator))
    return std::nullopt;
  const auto id = [&](std::string_view file) {
    return static_cast<std::uint16_t>(host.integer(gpu.path(file)).value_or(0) & 0xffff);
  };
  gpu.id = {id("vendor"), id("device"), id("subsystem_vendor"), id("subsystem_device")};
  gpu.vendor = vendor_of(gpu.id.vendor);
  if (gpu.vendor == device::Vendor::unknown) return std::nullopt;
  gpu.driver = host.link_name(gpu.path("driver")).value_or("");
  if (gpu.driver == "intel_vpu" || gpu.driver == "amdxdna") return std::nullopt;  // neural units, no GPUs
  name_by_rows(catalog.all_by_pci_id(gpu.id), gpu);
  return gpu;
}

std::string normal_address(std::string_view address) {
  std::string low = lower(address);
  return low.size() == 16 && low.starts_with("0000") ? low.substr(4) : low;  // NVML: "00000000:01:00.0"
}

// The compute capability that the driver itself tells.
void learn_from(const device::Snapshot& snapshot, std::vector<PciGpu>& gpus) {
  for (const device::Gpu& told : snapshot.gpus) {
    if (!told.pci_address) continue;
    for (PciGpu& gpu : gpus) {
      if (gpu.address != normal_address(*told.pci_address)) continue;
      if (told.name) gpu.name = *told.name;
      if (gpu.compute_capability.empty()) gpu.compute_capability = told.compute_capability.value_or("");
      if (gpu.architecture.empty()) gpu.architecture = told.architecture.value_or("");
    }
  }
}

}  // namespace

std::string PciGpu::path(std::string_view file) const {
  return fmt::format("{}/{}/{}", kDevices, address, file);
}

std::optional<std::string> NvidiaDriver::version() const {
  if (module_version) return module_version;
  std::set<std::string> versions;
  for (const auto* list : {&cuda_libraries, &nvml_libraries})
    for (const Library& library : *list) versions.insert(library.version);
  if (versions.size() != 1) return std::nullopt;
  return *versions.begin();
}

struct Machine::Found {
  bool gpus_read = false, modules_read = false;
  std::optional<std::vector<PciGpu>> gpus;
  std::optional<std::vector<KernelModule>> modules;
  std::optional<NvidiaDriver> nvidia;
  std::optional<Surroundings> surroundings;
  std::optional<std::vector<std::string>> library_folders;
  std::unique_ptr<Software> software;
};

Machine::Machine(const Host& host, const catalog::Catalog& catalog, const device::Snapshot* snapshot)
    : host_(host), catalog_(catalog), snapshot_(snapshot), found_(std::make_unique<Found>()) {}
Machine::~Machine() = default;

const catalog::Compat& Machine::compat() const {
  static const catalog::Compat loaded = [] {
    auto compat = catalog::Compat::load();
    return compat ? std::move(*compat) : catalog::Compat{};
  }();
  return loaded;
}

const std::optional<std::vector<PciGpu>>& Machine::pci_gpus() const {
  if (found_->gpus_read) return found_->gpus;
  found_->gpus_read = true;
  if (!host_.is_directory(kDevices)) return found_->gpus;
  std::vector<PciGpu> gpus;
  for (const std::string& address : host_.names(kDevices, kMostDevices)) {
    if (gpus.size() >= kMostGpus) break;
    if (auto gpu = read_gpu(host_, catalog_, address)) gpus.push_back(std::move(*gpu));
  }
  if (snapshot_ != nullptr) learn_from(*snapshot_, gpus);
  found_->gpus = std::move(gpus);
  return found_->gpus;
}

const std::vector<PciGpu>& Machine::gpus() const {
  static const std::vector<PciGpu> none;
  return pci_gpus() ? *pci_gpus() : none;
}

std::vector<const PciGpu*> Machine::gpus_of(device::Vendor vendor) const {
  std::vector<const PciGpu*> of;
  for (const PciGpu& gpu : gpus())
    if (gpu.vendor == vendor) of.push_back(&gpu);
  return of;
}

bool Machine::has(device::Vendor vendor) const {
  if (!gpus_of(vendor).empty()) return true;
  if (snapshot_ != nullptr && std::any_of(snapshot_->gpus.begin(), snapshot_->gpus.end(),
                                          [&](const auto& gpu) { return gpu.vendor == vendor; }))
    return true;
  if (vendor != device::Vendor::nvidia) return false;
  const Surroundings& around = surroundings();
  return around.tegra ||
         (around.wsl && host_.is_directory("/usr/lib/wsl/lib") && host_.exists("/usr/lib/wsl/lib/libcuda.so.1"));
}

const std::optional<std::vector<KernelModule>>& Machine::modules() const {
  if (found_->modules_read) return found_->modules;
  found_->modules_read = true;
  const auto text = host_.text("/proc/modules", 1 << 20);
  if (!text) return found_->modules;
  found_->modules.emplace();
  for (const std::string_view line : split(*text, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() < 3 || words[0].empty()) continue;
    found_->modules->push_back({std::string(words[0]), to_integer(words[2]).value_or(0)});
  }
  return found_->modules;
}

std::optional<bool> Machine::module_loaded(std::string_view name) const {
  if (host_.is_directory(fmt::format("/sys/module/{}", name))) return true;
  const auto& list = modules();
  if (!list) return std::nullopt;
  return std::any_of(list->begin(), list->end(), [&](const KernelModule& module) { return module.name == name; });
}

const NvidiaDriver& Machine::nvidia() const {
  if (!found_->nvidia) found_->nvidia = read_nvidia_driver(host_, library_folders());
  return *found_->nvidia;
}

std::optional<std::string> Machine::driver_cuda() const {
  if (snapshot_ != nullptr)
    for (const device::Driver& driver : snapshot_->drivers)
      if (driver.source == "nvml" && driver.cuda_version) return *driver.cuda_version;
  const auto version = nvidia().version();
  return version ? compat().newest_cuda_of(*version) : std::nullopt;
}

const Surroundings& Machine::surroundings() const {
  if (!found_->surroundings) found_->surroundings = read_surroundings(host_);
  return *found_->surroundings;
}

const std::vector<std::string>& Machine::library_folders() const {
  if (!found_->library_folders) found_->library_folders = read_library_folders(host_);
  return *found_->library_folders;
}

const Software& Machine::software() const {
  if (!found_->software) found_->software = std::make_unique<Software>(host_, library_folders());
  return *found_->software;
}

}  // namespace gpuwright::doctor
