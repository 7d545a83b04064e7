// What this source has to know that NVML does not tell, from files of the host: the version of the kernel module, the
// machine's memory, and which GPUs sleep. A simulated host answers for itself.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/source.h"
#include "device/sysfs/host_memory.h"

namespace gpuwright::device::nvidia {

// An NVIDIA display or 3D controller on the PCI bus.
struct BusDevice {
  std::string address;  // "0000:01:00.0", as sysfs writes it
  bool asleep = false;  // runtime-suspended: opening its device node would wake it
};

// What the kernel module tells in /proc/driver/nvidia/gpus/ADDRESS/information, which does not wake the device.
struct ModuleFacts {
  std::string name, uuid;
  std::optional<std::int64_t> minor;
};

class HostFiles {
 public:
  explicit HostFiles(const SourceOptions& options) : root_(options.root), simulated_(options.simulated) {}

  // "535.129.03" of /proc/driver/nvidia/version.
  std::optional<std::string> module_version() const;
  HostMemory memory() const;
  // NVIDIA's GPUs in the order of their addresses, which is NVML's order. Empty where there is no PCI bus.
  std::vector<BusDevice> bus_devices() const;
  bool asleep(const std::string& address) const;
  Reading<std::int64_t> numa_node(const std::string& address) const;
  ModuleFacts module_facts(const std::string& address) const;
  // Whether the device nodes are there but may not be opened. In a container that was started before "systemctl
  // daemon-reload" the cgroup has lost the right to them (NVIDIA/nvidia-container-toolkit#48).
  bool nodes_forbidden() const;
  bool inside_container() const;

 private:
  std::optional<std::string> read(const std::string& path) const;
  std::vector<std::string> list(const std::string& path) const;
  // A root given beside a simulated host is that host's tree.
  bool ask_host() const { return simulated_ != nullptr && root_.empty(); }

  std::string root_;
  std::shared_ptr<sim::Host> simulated_;
};

// "0000:01:00.0" of NVML's "00000000:01:00.0"; sysfs writes four digits of the domain where they suffice.
std::string short_address(const std::string& bus_id);

}  // namespace gpuwright::device::nvidia
