// The graphics devices that a kernel driver serves, as /sys/class/drm lists them, and what all of them tell alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "catalog/catalog.h"
#include "device/snapshot.h"
#include "device/source.h"

namespace gpuwright::device {

struct DrmCard {
  int number = 0;           // of "card1"
  std::string folder;       // ROOT/sys/class/drm/card1
  std::string device;       // ROOT/sys/class/drm/card1/device
  std::string driver;       // "amdgpu"
  std::string pci_address;  // "0000:03:00.0", in lower case
  catalog::PciId id;
};

// PCI devices with one of the drivers, by card number. Partitions of a device (amdgpu_xcp) are not devices.
std::vector<DrmCard> drm_cards(const std::string& root, std::initializer_list<std::string_view> drivers);

// The kernel has suspended it; reading most attributes would wake it. Documentation/ABI/testing/sysfs-devices-power.
bool is_asleep(const std::string& device);

// Name, ids and catalogue row, as far as the PCI id (and the memory, where boards share an id) tells for sure. A name
// that is known already stays.
void identify(catalog::PciId id, std::optional<Bytes> memory, Gpu& gpu);
// The catalogue, loaded once; null when it cannot be.
const catalog::Catalog* known_gpus();

// NUMA node, minor, PCIe link now and at most: what the PCI core tells of each device.
void read_pci_facts(const DrmCard& card, Gpu& gpu);
void read_pci_link(const std::string& device, Gpu& gpu);
// "16.0 GT/s PCIe" is generation 4.
std::optional<std::int64_t> pcie_generation_of(std::string_view speed);

// hwmon/hwmonN of a device; where it has several, the one of that name. Empty when there is none.
std::string find_hwmon(const std::string& device, std::string_view name);

// Every reading that has no value yet and no better reason gets this one: "asleep" for a device that sleeps.
void explain_missing(Gpu& gpu, Why why);
// What nobody asked for is not_read again, whatever explain_missing made of it.
void forget_unasked(const Wants& wants, Gpu& gpu);

// The kernel's release where the driver has no version of its own.
Driver driver_of(const std::string& root, std::string_view module);

}  // namespace gpuwright::device
