// A source is one way in which devices tell about themselves: a vendor's library or a kernel driver's files. It runs
// inside the collector (collector.h), may be killed at any call, and keeps between reads what rates and caches need.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/snapshot.h"

namespace gpuwright::sim {
class Host;
}

namespace gpuwright::device {

// What a reader of the snapshot needs. Cheap values are always read; these cost more.
struct Wants {
  bool processes = true;
  bool process_utilization = true;
  bool traffic = false;   // PCIe and NVLink rates; needs two samples
  bool activity = false;  // GPM: SM activity, occupancy, tensor
  bool health = true;     // ECC, remapped rows, recovery action
  bool links = false;     // the neighbours of each link
};

struct SourceOptions {
  std::string root;  // before /sys, /proc, /dev and libraries' files; empty = this machine
  std::string nvml_library = "libnvidia-ml.so.1";  // as dlopen takes it; empty = do not ask NVIDIA's driver
  std::string dcmi_library = "libdcmi.so";
  // A simulated host to ask instead of this machine's drivers and /proc; null = the real ones.
  std::shared_ptr<sim::Host> simulated;
  bool wake = false;  // read runtime-suspended devices too, which wakes them
  Wants wants;
};

// Told before and after each call that may block, so that the collector's parent knows what hangs. The text must live
// for ever (a literal).
class CallWatch {
 public:
  virtual ~CallWatch() = default;
  // vendor_index: the device that is asked, -1 for the library as a whole.
  virtual void enter(std::string_view source, int vendor_index, const char* call) = 0;
  virtual void leave() = 0;
  // Devices of a source that hung before and must not be asked in this run; -1 stands for the source as a whole.
  virtual bool forbidden(std::string_view source, int vendor_index) const = 0;
  // How long all the calls of one reading may take together; what is not asked by then is not asked.
  virtual std::chrono::milliseconds budget() const { return std::chrono::milliseconds(2000); }
};
CallWatch& no_watch();  // watches nothing, forbids nothing

class Source {
 public:
  virtual ~Source() = default;
  virtual std::string_view name() const = 0;
  // Adds its devices, processes, drivers and one SourceReport to the snapshot, whose time is set. Gpu::index is left to
  // the reader; Process::gpu is the position in snapshot.gpus at that moment. A device that fails stays as a row with
  // its state; an exception or an early return for one device must not lose the others. Never blocks but in calls
  // that `watch` was told of.
  virtual void read(Snapshot& snapshot, CallWatch& watch) = 0;
};

// Each gives a source that is ready to read; whether it finds anything shows in its SourceReport.
std::unique_ptr<Source> nvml_source(const SourceOptions& options);
std::unique_ptr<Source> amdgpu_source(const SourceOptions& options);
std::unique_ptr<Source> intel_source(const SourceOptions& options);  // i915 and xe
std::unique_ptr<Source> ascend_source(const SourceOptions& options);
std::unique_ptr<Source> tegra_source(const SourceOptions& options);  // Jetson
// Devices on the PCI bus that no other source has told of: without a driver, or one that we do not read. Runs last.
std::unique_ptr<Source> pci_source(const SourceOptions& options);
// Fills in user, command, container and job of the processes that the sources before it found, from root/proc.
std::unique_ptr<Source> process_source(const SourceOptions& options);

}  // namespace gpuwright::device
