// The GPUs of this machine as the kernel's PCI tree shows them: no driver, no vendor library and no rights are needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "catalog/catalog.h"

namespace gpuwright::catalog {

struct HostGpu {
  std::string pci_address;  // "0000:01:00.0"
  PciId id;
  std::string name;  // of the catalogue's row, of the rows it may be ("A or B"), else "NVIDIA 10de:ffff"
  // Rows of the catalogue that the id may stand for: none, one, or the boards that share it.
  std::vector<const Accelerator*> candidates;
  std::optional<Bytes> memory;  // amdgpu's mem_info_vram_total, where that driver is loaded
  // A display adapter of a server's management chip or of a virtual machine: shows pictures, computes nothing.
  bool display_only = false;

  const Accelerator* accelerator() const { return candidates.size() == 1 ? candidates.front() : nullptr; }
};

struct HostGpus {
  std::string looked_at;  // the directory
  int pci_devices = 0;    // entries there; 0 also when the machine has no PCI bus
  std::vector<HostGpu> gpus;
};

// Devices of class 03 (display) and 12 (processing accelerator) under `root`/sys/bus/pci/devices. A machine without
// that directory has no such GPUs, which is no error. Entries that cannot be read are passed over. The catalogue must
// outlive the result.
HostGpus find_host_gpus(const Catalog& catalog, const std::string& root = "");

// "NVIDIA" of 0x10de; empty for vendors that make no accelerators.
std::string pci_vendor_name(std::uint16_t vendor);

}  // namespace gpuwright::catalog
