#include "device/sysfs/drm_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>

#include "base/text.h"
#include "catalog/host_gpus.h"
#include "device/fields.h"
#include "device/sysfs/attribute.h"

namespace gpuwright::device {
namespace {

constexpr std::size_t kMostCards = 256;

std::uint16_t hex16(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() ? value : std::uint16_t{0};
}

// "1002:744C"
void split_id(std::string_view text, std::uint16_t& vendor, std::uint16_t& device) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return;
  vendor = hex16(text.substr(0, colon));
  device = hex16(text.substr(colon + 1));
}

std::uint16_t id_attribute(const std::string& path) {
  const auto number = read_count(path, 0xffff);
  return number ? static_cast<std::uint16_t>(*number) : std::uint16_t{0};
}

// uevent tells it all in one read, and never wakes the device.
DrmCard read_card(const std::string& folder, int number) {
  DrmCard card;
  card.number = number;
  card.folder = folder;
  card.device = folder + "/device";
  const FileText uevent = read_start(card.device + "/uevent", kMostAttributeBytes);
  card.driver = value_of_line(uevent.text, "DRIVER");
  if (card.driver.empty()) card.driver = read_link_name(card.device + "/driver").value_or("");
  card.pci_address = lower(value_of_line(uevent.text, "PCI_SLOT_NAME"));
  split_id(value_of_line(uevent.text, "PCI_ID"), card.id.vendor, card.id.device);
  split_id(value_of_line(uevent.text, "PCI_SUBSYS_ID"), card.id.subsystem_vendor, card.id.subsystem_device);
  if (card.pci_address.empty()) {
    const std::string name = read_link_name(card.device).value_or("");
    if (name.find(':') != std::string::npos) card.pci_address = lower(name);
  }
  if (card.id.vendor == 0)
    card.id = {id_attribute(card.device + "/vendor"), id_attribute(card.device + "/device"),
               id_attribute(card.device + "/subsystem_vendor"), id_attribute(card.device + "/subsystem_device")};
  return card;
}

// Boards that share an id differ in their memory (RX 7900 XT and XTX).
std::vector<const catalog::Accelerator*> candidates_for(catalog::PciId id, std::optional<Bytes> memory) {
  const catalog::Catalog* catalog = known_gpus();
  if (catalog == nullptr) return {};
  std::vector<const catalog::Accelerator*> rows = catalog->all_by_pci_id(id);
  if (rows.size() < 2 || !memory) return rows;
  std::vector<const catalog::Accelerator*> fitting;
  for (const catalog::Accelerator* row : rows)
    if (*memory <= row->nominal_memory && *memory >= row->nominal_memory.scaled(0.9)) fitting.push_back(row);
  return fitting.empty() ? rows : fitting;
}

}  // namespace

std::vector<DrmCard> drm_cards(const std::string& root, std::initializer_list<std::string_view> drivers) {
  std::vector<DrmCard> cards;
  const std::string folder = root + "/sys/class/drm/";
  for (const std::string& name : numbered_in(folder, "card")) {
    if (cards.size() >= kMostCards) break;
    DrmCard card = read_card(folder + name, *number_after(name, "card"));
    if (card.pci_address.empty() || std::find(drivers.begin(), drivers.end(), card.driver) == drivers.end()) continue;
    cards.push_back(std::move(card));
  }
  return cards;
}

bool is_asleep(const std::string& device) {
  const auto status = read_attribute(device + "/power/runtime_status");
  return status && (*status == "suspended" || *status == "suspending");
}

const catalog::Catalog* known_gpus() {
  static const Result<catalog::Catalog> kCatalog = catalog::Catalog::load();
  return kCatalog ? &*kCatalog : nullptr;
}

void identify(catalog::PciId id, std::optional<Bytes> memory, Gpu& gpu) {
  gpu.pci_id = fmt::format("{:04x}:{:04x}", id.vendor, id.device);
  const auto rows = candidates_for(id, memory);
  if (!gpu.name) {
    std::string name;
    for (const catalog::Accelerator* row : rows)
      name += name.empty() ? row->vendor + " " + row->name : " or " + row->name;
    if (name.empty()) {
      const std::string vendor = catalog::pci_vendor_name(id.vendor);
      name = fmt::format("{} {:04x}:{:04x}", vendor.empty() ? "unknown vendor" : vendor, id.vendor, id.device);
    }
    gpu.name = name;
  }
  if (rows.empty()) return;
  const auto same = [&](const catalog::Accelerator* row) { return row->architecture == rows.front()->architecture; };
  if (!rows.front()->architecture.empty() && std::all_of(rows.begin(), rows.end(), same))
    gpu.architecture = rows.front()->architecture;
  if (rows.size() == 1) gpu.catalog_id = rows.front()->id;
}

std::optional<std::int64_t> pcie_generation_of(std::string_view speed) {
  struct Generation {
    std::string_view speed;
    std::int64_t number;
  };
  // pci_speed_string() of drivers/pci/probe.c
  static constexpr std::array kGenerations = {Generation{"2.5 GT/s", 1},  Generation{"5.0 GT/s", 2},
                                              Generation{"8.0 GT/s", 3},  Generation{"16.0 GT/s", 4},
                                              Generation{"32.0 GT/s", 5}, Generation{"64.0 GT/s", 6}};
  for (const Generation& generation : kGenerations)
    if (speed.starts_with(generation.speed)) return generation.number;
  return std::nullopt;
}

void read_pci_link(const std::string& device, Gpu& gpu) {
  const auto generation = [&](const char* name) -> Reading<std::int64_t> {
    const auto text = read_attribute(device + "/" + name);
    if (!text) return text.why();
    const auto number = pcie_generation_of(*text);
    return number ? Reading<std::int64_t>(*number) : Why::no_data;  // "Unknown" while the link is down
  };
  constexpr std::int64_t kMostLanes = 32;
  const auto lanes = [&](const char* name) -> Reading<std::int64_t> {
    const auto width = read_count(device + "/" + name, kMostLanes);
    if (width && *width == 0) return Why::no_data;
    return width;
  };
  gpu.pcie_generation = generation("current_link_speed");
  gpu.pcie_generation_max = generation("max_link_speed");
  gpu.pcie_width = lanes("current_link_width");
  gpu.pcie_width_max = lanes("max_link_width");
}

void read_pci_facts(const DrmCard& card, Gpu& gpu) {
  gpu.pci_address = card.pci_address;
  gpu.device_minor = card.number;
  const auto node = read_integer(card.device + "/numa_node");
  if (node && *node >= 0)
    gpu.numa_node = *node;
  else
    gpu.numa_node = Why::not_supported;  // -1: the firmware does not say
}

std::string find_hwmon(const std::string& device, std::string_view name) {
  std::string first;
  for (const std::string& folder : numbered_in(device + "/hwmon", "hwmon", 64)) {
    const std::string path = device + "/hwmon/" + folder;
    if (read_attribute(path + "/name") == std::string(name)) return path;
    if (first.empty()) first = path;
  }
  return first;
}

void explain_missing(Gpu& gpu, Why why) {
  for_each_reading_of_gpu(gpu, [&](std::string_view, auto& reading) {
    if (!reading.known() && reading.why() == Why::not_read) reading = why;
  });
}

void forget_unasked(const Wants& wants, Gpu& gpu) {
  if (!wants.health)
    for (Reading<std::int64_t>* reading :
         {&gpu.ecc_corrected_volatile, &gpu.ecc_uncorrected_volatile, &gpu.ecc_corrected_aggregate,
          &gpu.ecc_uncorrected_aggregate, &gpu.remapped_rows_corrected, &gpu.remapped_rows_uncorrected,
          &gpu.retired_pages_corrected, &gpu.retired_pages_uncorrected})
      *reading = Why::not_read;
  if (!wants.health)
    for (Reading<bool>* reading :
         {&gpu.ecc_enabled, &gpu.remapping_pending, &gpu.remapping_failed, &gpu.retirement_pending})
      *reading = Why::not_read;
  if (!wants.traffic)
    for (Reading<BytesPerSecond>* reading :
         {&gpu.pcie_sent, &gpu.pcie_received, &gpu.nvlink_sent, &gpu.nvlink_received})
      *reading = Why::not_read;
}

Driver driver_of(const std::string& root, std::string_view module) {
  Driver driver;
  driver.source = module;
  driver.library_version = Why::not_supported;
  driver.cuda_version = Why::not_supported;
  driver.version = read_attribute(fmt::format("{}/sys/module/{}/version", root, module));
  if (!driver.version)
    if (auto release = read_attribute(root + "/proc/sys/kernel/osrelease")) driver.version = "Linux " + *release;
  return driver;
}

}  // namespace gpuwright::device
