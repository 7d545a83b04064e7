#include "cli/doctor_simulated.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace gpuwright::cli {
namespace {

using doctor::Archive;
using doctor::ArchiveEntry;

constexpr std::string_view kDevices = "/sys/bus/pci/devices";
constexpr std::string_view kLibraries = "/usr/lib/x86_64-linux-gnu";

void add_libraries(const device::Snapshot& snapshot, Archive& archive) {
  for (const device::Driver& driver : snapshot.drivers) {
    const auto& version = driver.library_version ? driver.library_version : driver.version;
    if (driver.source != "nvml" || !version) continue;
    for (const char* name : {"libcuda.so", "libnvidia-ml.so"}) {
      archive[fmt::format("{}/{}.{}", kLibraries, name, *version)] = {};
      archive[fmt::format("{}/{}.1", kLibraries, name)] = {ArchiveEntry::Kind::link,
                                                           fmt::format("{}.{}", name, *version)};
    }
  }
}

// Since branch 560 the open modules are what installers choose (NVIDIA driver installation guide, kernel modules).
std::string as_installed(std::string text) {
  constexpr std::string_view kClosed = "NVIDIA UNIX x86_64 Kernel Module  ";
  const std::size_t at = text.find(kClosed);
  if (at == std::string::npos) return text;
  const std::size_t version = at + kClosed.size();
  constexpr std::int64_t kFirstOpen = 560;
  if (to_integer(text.substr(version, text.find('.', version) - version)).value_or(0) >= kFirstOpen)
    text.replace(at, kClosed.size(), "NVIDIA UNIX Open Kernel Module for x86_64  ");
  return text;
}

}  // namespace

Archive simulated_machine(const sim::Host& host, const device::Snapshot& snapshot) {
  Archive archive;
  const bool loaded = host.file("/proc/driver/nvidia/version").has_value();
  for (const char* path : {"/proc/driver/nvidia/version", "/proc/meminfo"})
    if (auto text = host.file(path)) archive[path] = {ArchiveEntry::Kind::file, as_installed(std::move(*text))};
  archive["/proc/modules"] = {ArchiveEntry::Kind::file,
                              loaded ? "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 nvidia_uvm, Live 0x0\n" : ""};
  Json nodes = Json::object();
  const auto add_node = [&](const std::string& path) { nodes.set(path, Json().set("mode", "0666")); };
  int minor = 0;
  for (const std::string& address : host.files_in(kDevices)) {
    const std::string folder = fmt::format("{}/{}/", kDevices, address);
    for (const char* name : {"vendor", "device", "class", "numa_node"})
      if (auto text = host.file(folder + name)) archive[folder + name] = {ArchiveEntry::Kind::file, std::move(*text)};
    if (!loaded) continue;
    archive[folder + "driver"] = {ArchiveEntry::Kind::link, "../../../bus/pci/drivers/nvidia"};
    archive[fmt::format("/proc/driver/nvidia/gpus/{}/information", address)] = {
        ArchiveEntry::Kind::file, fmt::format("Device Minor: \t {}\n", minor)};
    add_node(fmt::format("/dev/nvidia{}", minor++));
  }
  if (loaded) add_node("/dev/nvidiactl");
  if (loaded) add_node("/dev/nvidia-uvm");
  archive["/gpuwright-host.json"] = {ArchiveEntry::Kind::file, Json().set("nodes", std::move(nodes)).dump()};
  add_libraries(snapshot, archive);
  return archive;
}

}  // namespace gpuwright::cli
