// GPUs that sit on the bus and that no other source told of: without a driver, given to a virtual machine, or with a
// driver that we do not read. Only the PCI core's files are read, which wakes nothing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/text.h"
#include "catalog/host_gpus.h"
#include "device/source.h"
#include "device/sysfs/attribute.h"
#include "device/sysfs/drm_card.h"

namespace gpuwright::device {
namespace {

constexpr std::int64_t kScanLasts = 10'000'000'000;  // ns: devices are seldom plugged in
constexpr std::size_t kMostDevices = 65536, kMostRows = 256;

// NVML writes domains with eight digits and capitals: "00000000:C1:00.0".
std::string normal_address(std::string_view address) {
  const std::size_t colon = address.find(':');
  unsigned domain = 0;
  const auto [end, error] =
      std::from_chars(address.data(), address.data() + std::min(colon, address.size()), domain, 16);
  if (colon == std::string_view::npos || error != std::errc() || end != address.data() + colon) return lower(address);
  return fmt::format("{:04x}{}", domain, lower(address.substr(colon)));
}

Vendor vendor_of(std::uint16_t id) {
  switch (id) {
    case 0x10de:
      return Vendor::nvidia;
    case 0x1002:
      return Vendor::amd;
    case 0x8086:
      return Vendor::intel;
    case 0x19e5:
      return Vendor::huawei;
    default:
      return Vendor::unknown;
  }
}

struct Finding {
  State state = State::failed;
  std::string detail;
};

// What a driver's name means for who wants to compute.
Finding finding_for(const std::string& driver, Vendor vendor, const Snapshot& snapshot) {
  if (driver.empty()) {
    if (vendor == Vendor::nvidia)
      return {State::no_driver, "no kernel driver is bound; install NVIDIA's, or load it: modprobe nvidia"};
    if (vendor == Vendor::amd) return {State::no_driver, "no kernel driver is bound; load it: modprobe amdgpu"};
    if (vendor == Vendor::intel)
      return {State::no_driver, "no kernel driver is bound; load it: modprobe xe (before Linux 6.8: i915)"};
    return {State::no_driver, "no kernel driver is bound"};
  }
  if (driver == "vfio-pci" || driver == "pci-stub" || driver == "xen-pciback")
    return {State::no_driver, driver + " holds it for a virtual machine"};
  if (driver == "nouveau" || driver == "nova" || driver == "nova_core")
    return {State::no_driver, "the kernel driver " + driver + " is bound, which runs no CUDA; install NVIDIA's"};
  if (driver == "radeon") return {State::no_driver, "the kernel driver radeon is bound, which runs no ROCm"};
  if (driver.starts_with("nvidia"))
    for (const SourceReport& report : snapshot.sources)
      if (report.source == "nvml" && report.outcome != SourceReport::Outcome::found)
        return {State::failed, "its driver is loaded, but NVML does not tell of it: " + report.text};
  return {State::failed, "bound to the kernel driver " + driver + ", which tells us nothing of it"};
}

class PciSource : public Source {
 public:
  explicit PciSource(const SourceOptions& options) : options_(options) {}

  std::string_view name() const override { return "pci"; }

  void read(Snapshot& snapshot, CallWatch&) override {
    if (options_.simulated) return;
    if (!scanned_ || snapshot.monotonic_ns - scanned_at_ > kScanLasts || snapshot.monotonic_ns < scanned_at_)
      scan(snapshot.monotonic_ns);
    std::set<std::string> told;
    for (const Gpu& gpu : snapshot.gpus)
      if (gpu.pci_address) told.insert(normal_address(*gpu.pci_address));
    int rows = 0;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (told.contains(found_[i].address)) continue;
      if (!read_count(path(found_[i].address, "class"))) {
        scanned_ = false;  // pulled out since
        continue;
      }
      if (auto gpu = row_for(found_[i], static_cast<int>(i), snapshot)) {
        snapshot.gpus.push_back(std::move(*gpu));
        ++rows;
      }
    }
    SourceReport report{"pci", SourceReport::Outcome::absent, {}, {}};
    if (rows > 0) report.outcome = SourceReport::Outcome::found;
    report.text = rows > 0 ? fmt::format("{} GPU{} without a driver that tells of it", rows, rows == 1 ? "" : "s")
                           : fmt::format("{} PCI devices, {} of them GPUs", devices_, found_.size());
    snapshot.sources.push_back(std::move(report));
  }

 private:
  struct Found {
    std::string address;
    catalog::PciId id;
    bool is_function_of_another = false;  // SR-IOV
  };

  std::string path(const std::string& address, const char* name) const {
    return options_.root + "/sys/bus/pci/devices/" + address + "/" + name;
  }

  std::uint16_t id_attribute(const std::string& address, const char* name) const {
    const auto number = read_count(path(address, name), 0xffff);
    return number ? static_cast<std::uint16_t>(*number) : std::uint16_t{0};
  }

  void scan(std::int64_t now) {
    scanned_ = true;
    scanned_at_ = now;
    found_.clear();
    const auto addresses = names_in(options_.root + "/sys/bus/pci/devices", kMostDevices);
    devices_ = addresses.size();
    for (const std::string& address : addresses) {
      const auto device_class = read_count(path(address, "class"), 0xffffff);
      if (!device_class || found_.size() >= kMostRows) continue;
      constexpr std::int64_t kDisplay = 0x03, kAccelerator = 0x12;
      const std::int64_t base = *device_class >> 16;
      if (base != kDisplay && base != kAccelerator) continue;
      Found one{normal_address(address),
                {id_attribute(address, "vendor"), id_attribute(address, "device"),
                 id_attribute(address, "subsystem_vendor"), id_attribute(address, "subsystem_device")},
                read_link(path(address, "physfn")).known()};
      // The picture of a server's management chip or of a virtual machine.
      if (base == kDisplay && catalog::pci_vendor_name(one.id.vendor).empty()) continue;
      found_.push_back(std::move(one));
    }
  }

  std::optional<Gpu> row_for(const Found& found, int number, const Snapshot& snapshot) const {
    const std::string driver = read_link_name(path(found.address, "driver")).value_or("");
    // Neural units of processors are no GPUs; functions without a driver wait for a virtual machine.
    if (driver == "intel_vpu" || driver == "amdxdna" || (found.is_function_of_another && driver.empty()))
      return std::nullopt;
    Gpu gpu;
    gpu.vendor = vendor_of(found.id.vendor);
    gpu.source = "pci";
    gpu.vendor_index = number;
    const Finding finding = finding_for(driver, gpu.vendor, snapshot);
    gpu.state = finding.state;
    gpu.state_detail = finding.detail;
    gpu.pci_address = found.address;
    identify(found.id, std::nullopt, gpu);
    const auto node = read_integer(path(found.address, "numa_node"));
    if (node && *node >= 0) gpu.numa_node = *node;
    explain_missing(gpu, gpu.state == State::no_driver ? Why::no_driver : Why::failed);
    return gpu;
  }

  SourceOptions options_;
  bool scanned_ = false;
  std::int64_t scanned_at_ = 0;
  std::size_t devices_ = 0;
  std::vector<Found> found_;
};

}  // namespace

std::unique_ptr<Source> pci_source(const SourceOptions& options) {
  return std::make_unique<PciSource>(options);
}

}  // namespace gpuwright::device
