#include "device/amdgpu/kfd.h"

#include <fmt/format.h>

#include "base/text.h"
#include "device/sysfs/attribute.h"

namespace gpuwright::device {
namespace {

constexpr std::size_t kMostNodes = 512, kMostLinks = 512, kMostProcesses = 16384;

std::int64_t property(std::string_view text, std::string_view key) {
  return to_integer(value_of_line(text, key)).value_or(0);
}

// location_id is bus, device and function as PCI packs them.
std::string address_of(std::string_view properties) {
  const std::int64_t location = property(properties, "location_id"), domain = property(properties, "domain");
  if (location <= 0 || location > 0xffff || domain < 0 || domain > 0xffff'ffff) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.{}", domain, location >> 8, (location >> 3) & 0x1f, location & 7);
}

}  // namespace

std::string instruction_set_of(std::int64_t version) {
  if (version < 10000 || version > 999999) return {};
  return fmt::format("gfx{}{}{:x}", version / 10000, version / 100 % 100, version % 100);
}

std::map<std::string, KfdNode> read_kfd_topology(const std::string& root) {
  const std::string folder = root + "/sys/class/kfd/kfd/topology/nodes/";
  std::map<std::string, KfdNode> nodes;
  std::map<std::int64_t, std::string> address_of_node;
  std::map<std::string, std::string> folder_of;
  for (const std::string& name : numbered_in(folder, "", kMostNodes)) {
    const auto gpu_id = read_count(folder + name + "/gpu_id");
    if (!gpu_id || *gpu_id == 0) continue;  // 0: a node of CPUs
    const FileText properties = read_start(folder + name + "/properties");
    const std::string address = address_of(properties.text);
    if (address.empty()) continue;
    KfdNode& node = nodes[address];
    node.gpu_id = *gpu_id;
    node.instruction_set = instruction_set_of(property(properties.text, "gfx_target_version"));
    node.has_cpu_cores = property(properties.text, "cpu_cores_count") > 0;
    address_of_node[*number_after(name, "")] = address;
    folder_of[address] = folder + name;
  }
  constexpr std::int64_t kXgmi = 11;  // CRAT_IOLINK_TYPE_XGMI, kfd_crat.h
  for (auto& [address, node] : nodes) {
    const std::string links = folder_of[address] + "/io_links/";
    for (const std::string& name : numbered_in(links, "", kMostLinks)) {
      const FileText properties = read_start(links + name + "/properties");
      if (property(properties.text, "type") != kXgmi) continue;
      const auto to = address_of_node.find(property(properties.text, "node_to"));
      if (to != address_of_node.end()) node.xgmi_to.push_back(to->second);
    }
  }
  return nodes;
}

std::vector<KfdMemory> read_kfd_processes(const std::string& root) {
  const std::string folder = root + "/sys/class/kfd/kfd/proc/";
  std::vector<KfdMemory> found;
  for (const std::string& pid : numbered_in(folder, "", kMostProcesses))
    for (const std::string& name : names_in(folder + pid, kMostNodes)) {
      const auto gpu_id = number_after(name, "vram_");
      if (!gpu_id) continue;
      const auto bytes = read_bytes(folder + pid + "/" + name);
      if (bytes) found.push_back({*number_after(pid, ""), *gpu_id, *bytes});
    }
  return found;
}

}  // namespace gpuwright::device
