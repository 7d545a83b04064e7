// What several checks ask of a host: its GPUs, its driver, whether this is a container. Each is found out once, when
// the first check asks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/compat.h"
#include "device/snapshot.h"
#include "doctor/host.h"

namespace gpuwright::doctor {

class Software;

// A GPU on the PCI bus, by sysfs.
struct PciGpu {
  std::string address;  // "0000:01:00.0"
  catalog::PciId id;
  device::Vendor vendor = device::Vendor::unknown;
  std::string driver;                                 // the kernel driver that is bound to it; empty: none
  const catalog::Accelerator* accelerator = nullptr;  // its row of the catalogue
  std::string name;                                   // the catalogue's, else "NVIDIA GPU 10de:2684"
  std::string architecture;                           // "Ada Lovelace"; empty: not known
  std::string compute_capability;                     // "8.9", "gfx942"; empty: not known
  std::string path(std::string_view file) const;
};

struct KernelModule {
  std::string name;
  std::int64_t users = 0;
};

// What an NVIDIA driver is by the files that it leaves.
struct NvidiaDriver {
  std::optional<std::string> module_version;  // loaded: /proc/driver/nvidia/version
  std::optional<bool> open;                   // loaded: which flavour
  // libcuda.so.X and libnvidia-ml.so.X that the loader can find, by path, real files only.
  struct Library {
    std::string path, version;
  };
  std::vector<Library> cuda_libraries, nvml_libraries;
  // The loaded module's version, else that of the only library.
  std::optional<std::string> version() const;
};

// Where the programs run that have the problem.
struct Surroundings {
  std::optional<std::string> container;  // "docker", "podman", "kubernetes", "lxc", ...; "" = none; nothing = not known
  bool wsl = false;
  bool tegra = false;  // Jetson: its GPU is not on the PCI bus
  bool virtual_machine = false;
  bool in_container() const { return container && !container->empty(); }
};

// Holds what it found; all that it is made of has to outlive it. Not thread-safe.
class Machine {
 public:
  // snapshot: what the drivers tell; null where they were not asked, as of a captured host without "gpus".
  Machine(const Host& host, const catalog::Catalog& catalog, const device::Snapshot* snapshot);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const Host& host() const { return host_; }
  const catalog::Catalog& catalog() const { return catalog_; }
  const catalog::Compat& compat() const;  // data/compat.toml; empty where that cannot be read
  const device::Snapshot* snapshot() const { return snapshot_; }

  // Nothing where the bus cannot be listed (no /sys).
  const std::optional<std::vector<PciGpu>>& pci_gpus() const;
  // The same, empty when unknown.
  const std::vector<PciGpu>& gpus() const;
  std::vector<const PciGpu*> gpus_of(device::Vendor vendor) const;
  // On the bus, of WSL, Jetson, or told by the snapshot.
  bool has(device::Vendor vendor) const;
  bool has_nvidia() const { return has(device::Vendor::nvidia); }

  // Nothing where /proc/modules cannot be read (some containers).
  const std::optional<std::vector<KernelModule>>& modules() const;
  std::optional<bool> module_loaded(std::string_view name) const;  // "nvidia_uvm"
  const NvidiaDriver& nvidia() const;
  const Surroundings& surroundings() const;

  // The newest CUDA that NVIDIA's driver runs: as it tells, else by its version.
  std::optional<std::string> driver_cuda() const;

  // Folders in which the loader looks for libraries of this machine's word size: ld.so.conf and the usual ones.
  const std::vector<std::string>& library_folders() const;
  // Python environments, PyTorch, toolkits (software.h).
  const Software& software() const;

 private:
  struct Found;
  const Host& host_;
  const catalog::Catalog& catalog_;
  const device::Snapshot* snapshot_;
  std::unique_ptr<Found> found_;
};

}  // namespace gpuwright::doctor
