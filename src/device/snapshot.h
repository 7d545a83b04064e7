// The noun of this room: everything that the GPUs of one host told at one moment. Vendor differences end at the sources
// (source.h) that fill it in; whoever reads a Snapshot need not know who made the device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "device/reading.h"

namespace gpuwright::device {

struct Joules {
  double value = 0;
  constexpr auto operator<=>(const Joules&) const = default;
};
struct BytesPerSecond {
  double value = 0;
  constexpr auto operator<=>(const BytesPerSecond&) const = default;
};
// Nanoseconds since 1970 UTC.
struct UnixTime {
  std::int64_t nanoseconds = 0;
  constexpr auto operator<=>(const UnixTime&) const = default;
};

enum class Vendor : std::uint8_t { unknown, nvidia, amd, intel, huawei };
std::string_view to_string(Vendor vendor);  // "NVIDIA"

// Whether the device can be worked with. Recorded in files: new states go to the end.
enum class State : std::uint8_t {
  ok,
  asleep,         // runtime-suspended by the kernel; reading more would wake it
  lost,           // fell off the bus: the machine has to be restarted or the slot power-cycled
  needs_reset,    // the driver wants a reset of the GPU
  unresponsive,   // a call to the driver did not come back in time
  no_permission,  // the driver refuses this user
  no_driver,      // seen on the bus, but no kernel driver is bound
  failed,         // the driver answered with another error
};
std::string_view to_string(State state);

// Why clocks are below what they could be; bits, as several hold at once. NVIDIA's are nvml.h's
// nvmlClocksEventReasons, bit for bit; AMD's throttle status is mapped onto them.
namespace throttle {
inline constexpr std::uint64_t kIdle = 0x1, kApplicationClocks = 0x2, kSoftwarePowerCap = 0x4, kHardwareSlowdown = 0x8,
                               kSyncBoost = 0x10, kSoftwareThermal = 0x20, kHardwareThermal = 0x40,
                               kHardwarePowerBrake = 0x80, kDisplayClocks = 0x100;
}
struct ThrottleReasons {
  std::uint64_t bits = 0;
  bool operator==(const ThrottleReasons&) const = default;
};
std::vector<std::string_view> names_of(ThrottleReasons reasons);  // {"software power cap"}

// One Xid (NVIDIA's error code of the kernel log) seen since the reader began, or found in the kernel's log.
struct XidEvent {
  int code = 0;
  UnixTime time;
  int count = 1;
  bool operator==(const XidEvent&) const = default;
};

struct MigInstance {
  int gpu_instance = 0;
  int compute_instance = 0;
  Reading<std::string> uuid;
  Reading<std::string> profile;  // "1g.10gb"
  Reading<Bytes> memory_total, memory_used, memory_free;
  Reading<std::int64_t> multiprocessors;
  Reading<Ratio> graphics_activity, sm_activity, sm_occupancy, tensor_activity;
  bool operator==(const MigInstance&) const = default;
};

// One port of the device to a neighbour: NVLink, XGMI.
struct Link {
  int number = 0;
  Reading<bool> active;
  Reading<std::string> remote;  // PCI address of the other end, "NVSwitch"
  bool operator==(const Link&) const = default;
};

// Rates (BytesPerSecond, and Ratio where a driver gives only counters) need two samples. Ratios are within 0..1.
// fields.h lists the readings by name; a new one gets a line there, and with it JSON, CSV, records and replay.
struct Gpu {
  // Position in Snapshot::gpus as first seen. It stays while the reader lives, whatever becomes of the others.
  int index = 0;
  // Position among the devices of its own source, as the vendor's tools count: nvidia-smi's index, "card1" is 1.
  int vendor_index = 0;
  Vendor vendor = Vendor::unknown;
  std::string source;  // "nvml", "amdgpu", "i915", "xe", "dcmi", "tegra", "pci"
  State state = State::ok;
  std::string state_detail;  // why it is not ok, and what to do: "nvmlDeviceGetMemoryInfo did not answer in 1500 ms"
  bool unified_memory = false;
  std::string catalog_id;  // of data/gpus.toml, where the device is known for sure; else empty

  Reading<std::string> name, uuid, serial, pci_address, pci_id, vbios, architecture, compute_capability;
  Reading<std::int64_t> device_minor, numa_node, cuda_index;

  // Of a device with memory of its own: total = reserved + used + free. used leaves out what the driver keeps.
  // Of unified memory: total is the machine's RAM, used is what processes hold through the GPU, host_used is what the
  // rest of the machine holds, and free is what an allocation could still get. Of AMD's APUs total is what the GPU can
  // reach: the part of RAM that the firmware took away for it (vram) and what it may map of the rest (gtt).
  Reading<Bytes> memory_total, memory_used, memory_reserved, memory_free, host_used;
  Reading<Bytes> bar1_total, bar1_used;
  Reading<Bytes> gtt_total, gtt_used;    // AMD: system memory that the GPU maps
  Reading<Bytes> vram_total, vram_used;  // AMD APU: RAM that the firmware set apart for the GPU

  Reading<Ratio> utilization, memory_utilization, encoder_utilization, decoder_utilization, jpeg_utilization,
      ofa_utilization;
  Reading<Ratio> sm_activity, sm_occupancy, tensor_activity;

  Reading<Hertz> sm_clock, graphics_clock, memory_clock, video_clock, sm_clock_max, graphics_clock_max,
      memory_clock_max;
  Reading<std::int64_t> performance_state;  // NVIDIA: 0 is fastest
  Reading<ThrottleReasons> throttle_reasons;

  Reading<Watts> power, power_instant, power_limit, power_limit_default, power_limit_min, power_limit_max;
  Reading<Joules> energy;  // since the driver was loaded
  Reading<Celsius> temperature, memory_temperature, temperature_slowdown, temperature_shutdown;
  Reading<Ratio> fan;
  Reading<std::int64_t> fan_rpm;

  Reading<BytesPerSecond> pcie_sent, pcie_received, nvlink_sent, nvlink_received;  // by the device
  Reading<std::int64_t> pcie_generation, pcie_generation_max, pcie_width, pcie_width_max, pcie_replays;

  Reading<bool> ecc_enabled;
  Reading<std::int64_t> ecc_corrected_volatile, ecc_uncorrected_volatile, ecc_corrected_aggregate,
      ecc_uncorrected_aggregate;
  Reading<std::int64_t> remapped_rows_corrected, remapped_rows_uncorrected, retired_pages_corrected,
      retired_pages_uncorrected;
  Reading<bool> remapping_pending, remapping_failed, retirement_pending;

  Reading<bool> mig_mode, persistence_mode, display_active;
  Reading<std::string> compute_mode;     // "default", "exclusive process", "prohibited"
  Reading<std::string> recovery_action;  // "none", "reset the GPU", "reboot the node", "drain and reset", ...
  Reading<std::int64_t> last_xid;

  std::vector<XidEvent> xids;
  std::vector<MigInstance> mig_instances;
  std::vector<Link> links;
  bool operator==(const Gpu&) const = default;
};

namespace process_kind {
inline constexpr std::uint8_t kCompute = 1, kGraphics = 2, kMps = 4;
}

// One process on one GPU (or MIG instance): a process that uses two GPUs has two rows.
struct Process {
  int gpu = 0;  // Gpu::index
  Reading<std::int64_t> gpu_instance, compute_instance;
  std::int64_t pid = 0;  // as the driver tells it: in the PID namespace of the host
  std::uint8_t kind = 0;
  Reading<std::int64_t> pid_here;  // in the namespace of this program; not_visible where it has none
  Reading<Bytes> memory;
  Reading<Ratio> sm_utilization, memory_utilization, encoder_utilization, decoder_utilization;

  Reading<std::string> user, command, executable;  // command: the arguments, joined by spaces
  Reading<UnixTime> started;
  Reading<Ratio> cpu;  // of one core; needs two samples
  Reading<Bytes> host_memory;
  // Empty where it is known that the process is in none. slurm_job as sacct writes it: "4711.0".
  Reading<std::string> container, container_runtime, pod, pod_uid, kubernetes_namespace, slurm_job, systemd_unit;
  bool operator==(const Process&) const = default;
};

// What a driver says of itself.
struct Driver {
  std::string source;                    // "nvml"
  Reading<std::string> version;          // of the kernel module: "580.95.05"
  Reading<std::string> library_version;  // of the user-space library
  Reading<std::string> cuda_version;     // the newest CUDA that the driver can run: "13.0"
  bool operator==(const Driver&) const = default;
};

// What became of one source: shown when there is no GPU, and when a source failed beside others that work.
struct SourceReport {
  enum class Outcome : std::uint8_t { found, absent, failed };
  std::string source;
  Outcome outcome = Outcome::absent;
  std::string text;  // "libnvidia-ml.so.1 is not installed", "kernel module 535.54, library 550.90: versions differ"
  std::string hint;  // what to do; may be empty
  bool operator==(const SourceReport&) const = default;
};

struct Snapshot {
  std::string hostname;
  std::string simulated;  // empty on a real machine, else the scenario's name: every output says SIMULATED
  UnixTime time;
  std::int64_t monotonic_ns = 0;  // for rates; not comparable between boots
  std::vector<Driver> drivers;
  std::vector<Gpu> gpus;
  std::vector<Process> processes;
  std::vector<SourceReport> sources;
  // Calls to vendor libraries that this snapshot took.
  std::int64_t vendor_calls = 0;
  bool operator==(const Snapshot&) const = default;
};

// used - sum of the processes' memory: what the driver counts and no visible process holds. Nothing when either side
// is unknown for a process or the device.
Reading<Bytes> unattributed_memory(const Snapshot& snapshot, const Gpu& gpu);

}  // namespace gpuwright::device
