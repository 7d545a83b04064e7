// What can be wrong on the bus, before any driver has a say.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/kernel_lines.h"

namespace gpuwright::doctor {
namespace {

using device::Vendor;

// WSL and Jetson have their GPU elsewhere.
Outcome check_present(const Machine& machine) {
  if (machine.surroundings().wsl) return not_applicable("WSL: the GPU is reached through Windows");
  if (machine.surroundings().tegra) return not_applicable("Jetson: the GPU is part of the chip");
  if (!machine.pci_gpus()) return unknown("/sys/bus/pci/devices cannot be listed");
  if (machine.gpus().empty()) {
    Outcome outcome;
    outcome.wrong("pci.present").seen("/sys/bus/pci/devices", "no NVIDIA, AMD or Intel device of class 03 or 12");
    return outcome;
  }
  std::vector<std::string> names;
  for (const PciGpu& gpu : machine.gpus()) names.push_back(gpu.name);
  return fine(fmt::format("{}", fmt::join(names, ", ")));
}

// A device that left the bus answers every read with ones. The kernel remembers its ids; its configuration space does
// not.
Outcome check_config_space(const Machine& machine) {
  if (machine.gpus().empty()) return not_applicable("no GPU on the bus");
  Outcome outcome = fine();
  int read = 0;
  for (const PciGpu& gpu : machine.gpus()) {
    const auto bytes = machine.host().text(gpu.path("config"), 64);
    if (!bytes || bytes->size() < 4) continue;
    ++read;
    if (std::all_of(bytes->begin(), bytes->begin() + 4, [](char c) { return c == '\xff'; }))
      outcome.wrong("pci.revff")
          .item("gpus", gpu.name)
          .item("addresses", gpu.address)
          .seen(gpu.path("config"), "ff ff ff ff ...");
  }
  if (read == 0 && outcome.state == State::ok) return unknown("the configuration space cannot be read");
  return outcome;
}

struct LinkState {
  std::int64_t width = 0, width_max = 0;
};

std::optional<LinkState> link_of(const Host& host, const std::string& folder) {
  const auto width = host.integer(folder + "/current_link_width"), max = host.integer(folder + "/max_link_width");
  if (!width || !max || *width <= 0 || *max <= 0 || *max > 32) return std::nullopt;
  return LinkState{*width, *max};
}

// Width: speed falls when the GPU is idle, width should not. What the slot itself offers less of is no fault of the
// card: the bridge above tells (its max_link_width).
Outcome check_link(const Machine& machine) {
  if (machine.gpus().empty()) return not_applicable("no GPU on the bus");
  if (machine.surroundings().virtual_machine) return not_applicable("a virtual machine shows its own links");
  Outcome outcome = fine();
  int read = 0;
  for (const PciGpu& gpu : machine.gpus()) {
    // AMD's card has a switch of its own: the link to the slot is two bridges further up.
    const std::string folder = gpu.path(gpu.vendor == Vendor::amd ? "../.." : "");
    auto link = link_of(machine.host(), gpu.vendor == Vendor::amd ? folder : gpu.path("."));
    if (!link) link = link_of(machine.host(), gpu.path("."));
    if (!link) continue;
    ++read;
    if (link->width >= link->width_max) continue;
    outcome.wrong("pci.link")
        .item("gpus", gpu.name)
        .fact("link_width", link->width)
        .fact("link_width_max", link->width_max)
        .seen(gpu.path("current_link_width"), fmt::format("{} of {}", link->width, link->width_max));
  }
  if (read == 0) return unknown("the link's width is not told");
  return outcome;
}

// Lines of /sys/.../resource: start, end, flags. A BAR that the device has and the firmware gave no room: 0 to 0.
Outcome check_bars(const Machine& machine) {
  if (machine.gpus().empty()) return not_applicable("no GPU on the bus");
  Outcome outcome = fine();
  int read = 0;
  for (const PciGpu& gpu : machine.gpus()) {
    const auto text = machine.host().text(gpu.path("resource"));
    if (!text) continue;
    ++read;
    const auto lines = split(*text, '\n');
    for (std::size_t bar = 0; bar < std::min<std::size_t>(lines.size(), 6); ++bar) {
      const auto words = split(trim(lines[bar]), ' ');
      if (words.size() != 3) continue;
      const auto number = [&](std::size_t i) { return std::strtoull(std::string(words[i]).c_str(), nullptr, 16); };
      constexpr std::uint64_t kMemory = 0x200, kUnset = 0x20000000;
      const bool wanted = (number(2) & kMemory) != 0;
      if (!wanted || (number(1) != 0 && (number(2) & kUnset) == 0)) continue;
      outcome.wrong("pci.bar")
          .item("gpus", gpu.name)
          .seen(gpu.path("resource"), lines[bar], static_cast<std::int64_t>(bar) + 1);
    }
  }
  if (const auto line =
          find_in_log(machine.host(), {"NVRM", "PCI I/O region assigned to your NVIDIA device is invalid"}))
    outcome.wrong("pci.bar").evidence.push_back(*line);
  if (read == 0 && outcome.state == State::ok) return unknown("the BARs cannot be read");
  return outcome;
}

// "TOTAL_ERR_FATAL 3" at the end of aer_dev_fatal (Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats).
std::optional<std::int64_t> errors_in(const Host& host, const std::string& path) {
  const auto text = host.text(path);
  if (!text) return std::nullopt;
  for (const std::string_view line : split(*text, '\n'))
    if (line.starts_with("TOTAL_ERR_")) return to_integer(line.substr(line.find(' ') + 1));
  return std::nullopt;
}

Outcome check_aer(const Machine& machine) {
  if (machine.gpus().empty()) return not_applicable("no GPU on the bus");
  Outcome outcome = fine();
  int read = 0;
  constexpr std::int64_t kManyCorrectable = 1000;
  for (const PciGpu& gpu : machine.gpus()) {
    for (const auto& [file, most] : {std::pair<const char*, std::int64_t>{"aer_dev_fatal", 0},
                                     {"aer_dev_nonfatal", 0},
                                     {"aer_dev_correctable", kManyCorrectable}}) {
      const auto errors = errors_in(machine.host(), gpu.path(file));
      if (!errors) continue;
      ++read;
      if (*errors <= most) continue;
      outcome.wrong("pci.aer")
          .item("gpus", gpu.name)
          .fact("errors", *errors)
          .seen(gpu.path(file), fmt::format("{} errors", *errors));
    }
  }
  if (read == 0) return unknown("the kernel keeps no counts of PCIe errors");
  return outcome;
}

bool peers_matter(const Machine& machine) {
  return machine.gpus_of(Vendor::nvidia).size() > 1 || machine.gpus_of(Vendor::amd).size() > 1;
}

Outcome check_iommu(const Machine& machine) {
  if (!peers_matter(machine)) return not_applicable("one GPU: no traffic between GPUs");
  if (machine.surroundings().virtual_machine) return not_applicable("a virtual machine");
  const auto line = machine.host().value("/proc/cmdline");
  if (!line) return unknown("/proc/cmdline cannot be read");
  if (machine.host().names("/sys/class/iommu").empty()) return fine("off");
  if (line->find("iommu=pt") != std::string::npos || line->find("iommu.passthrough=1") != std::string::npos)
    return fine("on, passing through");
  // Each group tells how it translates: "identity" passes through.
  for (const PciGpu& gpu : machine.gpus())
    if (machine.host().value(gpu.path("iommu_group/type")).value_or("") == "identity")
      return fine("on, passing through");
  Outcome outcome;
  outcome.wrong("pci.iommu").seen("/proc/cmdline", *line);
  return outcome;
}

std::uint16_t word_at(std::string_view bytes, std::size_t at) {
  if (at + 2 > bytes.size()) return 0;
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[at]) | static_cast<unsigned char>(bytes[at + 1])
                                                                                << 8);
}

// The control register of Access Control Services, an extended capability (PCI Express Base 5.0, 7.7.8: id 000Dh,
// control at 06h). Its bits 2 and 3 send requests and completions up to the root, past a switch's short way.
std::optional<std::uint16_t> acs_control(std::string_view config) {
  constexpr std::uint16_t kAcs = 0x000d;
  std::size_t at = 0x100;
  for (int steps = 0; steps < 64 && at >= 0x100 && at + 8 <= config.size(); ++steps) {
    if (word_at(config, at) == kAcs) return word_at(config, at + 6);
    at = word_at(config, at + 2) >> 4;
  }
  return std::nullopt;
}

Outcome check_acs(const Machine& machine) {
  if (!peers_matter(machine)) return not_applicable("one GPU: no traffic between GPUs");
  if (machine.surroundings().virtual_machine) return not_applicable("a virtual machine needs it");
  Outcome outcome = fine();
  int read = 0;
  for (const std::string& address : machine.host().names("/sys/bus/pci/devices", 65536)) {
    const std::string folder = "/sys/bus/pci/devices/" + address;
    if (machine.host().integer(folder + "/class").value_or(0) >> 8 != 0x0604) continue;
    const auto config = machine.host().text(folder + "/config", 4096);
    if (!config || config->size() <= 0x100) continue;  // root alone is given more than 64 bytes
    ++read;
    constexpr std::uint16_t kRequestRedirect = 0x4, kCompletionRedirect = 0x8;
    const auto control = acs_control(*config);
    if (control && (*control & (kRequestRedirect | kCompletionRedirect)) != 0)
      outcome.wrong("pci.acs")
          .item("bridges", address)
          .seen(folder + "/config", fmt::format("ACS control {:#06x}", *control));
  }
  if (read == 0) return unknown("only root may read the bridges' ACS settings");
  return outcome;
}

}  // namespace

std::vector<Check> pci_checks() {
  return {{"pci.present", Layer::bus, check_present},
          {"pci.revff", Layer::bus, check_config_space},
          {"pci.bar", Layer::bus, check_bars},
          {"pci.link", Layer::bus, check_link, Check::Use::both},
          {"pci.aer", Layer::bus, check_aer},
          {"pci.iommu", Layer::bus, check_iommu, Check::Use::both},
          {"pci.acs", Layer::bus, check_acs, Check::Use::both}};
}

}  // namespace gpuwright::doctor
