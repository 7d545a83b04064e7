#include "device/nvml/host_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/file.h"
#include "base/text.h"
#include "device/sysfs/attribute.h"
#include "sim/host.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr std::string_view kBus = "/sys/bus/pci/devices";
constexpr std::size_t kMostBusDevices = 4096;

// The first word of the form 535.54 or 535.129.03.
std::optional<std::string> version_in(std::string_view text) {
  for (std::string_view word : split(text, ' ')) {
    word = trim(word);
    const bool digits =
        std::all_of(word.begin(), word.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
    if (digits && word.size() >= 5 && word.size() <= 24 && word.find('.') != std::string_view::npos &&
        word.front() != '.')
      return std::string(word);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> HostFiles::read(const std::string& path) const {
  if (ask_host()) return simulated_->file(path);
  const FileText file = read_start(root_ + path);
  if (!file) return std::nullopt;
  return file.text;
}

std::vector<std::string> HostFiles::list(const std::string& path) const {
  if (ask_host()) return simulated_->files_in(path);
  return names_in(root_ + path, kMostBusDevices);
}

std::optional<std::string> HostFiles::module_version() const {
  const auto text = read("/proc/driver/nvidia/version");
  return text ? version_in(*text) : std::nullopt;
}

HostMemory HostFiles::memory() const {
  const auto text = read("/proc/meminfo");
  return text ? parse_meminfo(*text) : HostMemory{};
}

std::vector<BusDevice> HostFiles::bus_devices() const {
  std::vector<BusDevice> devices;
  for (const std::string& address : list(std::string(kBus))) {
    const std::string folder = std::string(kBus) + "/" + address;
    const auto vendor = read(folder + "/vendor");
    if (!vendor || trim(*vendor) != "0x10de") continue;
    const auto kind = read(folder + "/class");
    if (!kind || !(trim(*kind).starts_with("0x0300") || trim(*kind).starts_with("0x0302"))) continue;
    devices.push_back({address, asleep(address)});
  }
  return devices;
}

bool HostFiles::asleep(const std::string& address) const {
  const auto status = read(std::string(kBus) + "/" + address + "/power/runtime_status");
  return status && trim(*status) == "suspended";
}

Reading<std::int64_t> HostFiles::numa_node(const std::string& address) const {
  const auto text = read(std::string(kBus) + "/" + address + "/numa_node");
  const auto node = text ? to_integer(trim(*text)) : std::nullopt;
  // -1: the firmware does not say.
  return node && *node >= 0 ? Reading<std::int64_t>(*node) : Reading<std::int64_t>(Why::no_data);
}

ModuleFacts HostFiles::module_facts(const std::string& address) const {
  ModuleFacts facts;
  const auto text = read("/proc/driver/nvidia/gpus/" + address + "/information");
  if (!text) return facts;
  facts.name = printable(value_of_line(*text, "Model"));
  const std::string_view uuid = value_of_line(*text, "GPU UUID");
  // A device that was never opened has question marks for its digits.
  if (uuid.find('?') == std::string_view::npos) facts.uuid = printable(uuid);
  facts.minor = to_integer(value_of_line(*text, "Device Minor"));
  return facts;
}

bool HostFiles::nodes_forbidden() const {
  // A captured tree cannot tell what may be opened where it comes from.
  if (simulated_ != nullptr || !root_.empty()) return false;
  for (const char* node : {"/dev/nvidiactl", "/dev/nvidia0"}) {
    const int descriptor = ::open(node, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    const int number = errno;
    if (descriptor >= 0) ::close(descriptor);
    if (descriptor < 0 && (number == EPERM || number == EACCES)) return true;
  }
  return false;
}

bool HostFiles::inside_container() const {
  if (ask_host()) return false;
  if (path_exists(root_ + "/.dockerenv") || path_exists(root_ + "/run/.containerenv")) return true;
  const auto groups = read("/proc/1/cgroup");
  if (!groups) return false;
  return groups->find("kubepods") != std::string::npos || groups->find("docker") != std::string::npos ||
         groups->find("containerd") != std::string::npos || groups->find("libpod") != std::string::npos;
}

std::string short_address(const std::string& bus_id) {
  std::string address = lower(bus_id);
  if (address.size() == 16 && address.starts_with("0000")) address.erase(0, 4);
  return address;
}

}  // namespace gpuwright::device::nvidia
