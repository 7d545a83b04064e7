// What a scenario file says: the GPUs of a simulated host, their load, processes and faults. docs/simulate.md describes
// the file for people who write one; data/scenarios/ holds the built-in ones. Files are hostile: every number has a
// range, counts are bounded, and errors name file and line.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "catalog/accelerator.h"
#include "sim/curve.h"

namespace gpuwright::sim {

inline constexpr int kMaxGpus = 64;
inline constexpr double kForever = std::numeric_limits<double>::infinity();

// Seconds after the start of the host, end excluded.
struct Interval {
  double start = 0;
  double end = kForever;
  bool holds(double seconds) const { return seconds >= start && seconds < end; }
};

struct MigSpec {
  catalog::MigProfile profile;
  int gpu_instance = 0;  // ids as the driver counts them
  int compute_instance = 0;
  int slices = 1;  // the "3" of "3g.40gb"
  int multiprocessors = 0;
  Curve load;
  Interval interval;
  std::string uuid;
};

enum class MemoryAnswer { told, not_supported, zero };
enum class NvlinkShape { none, nvswitch, mesh, pairs };

struct ClockSpec {
  std::optional<int> idle_mhz, max_mhz;
};

struct GpuSpec {
  std::shared_ptr<const catalog::Accelerator> facts;
  std::string name;  // as the driver calls it
  std::string uuid;
  std::string serial;  // empty: not supported, as on GeForce
  std::string vbios;
  std::string pci_address;  // "00000000:1B:00.0", as NVML writes it
  unsigned pci_domain = 0, pci_bus = 0, pci_device = 0;
  int compute_major = 0, compute_minor = 0;
  int numa_node = 0;

  MemoryAnswer memory_answer = MemoryAnswer::told;
  std::int64_t memory_total = 0, memory_reserved = 0, memory_other = 0;  // other: used, and held by no process
  std::int64_t bar1_total = 0, bar1_used = 0;

  Curve load, memory_load, encoder, decoder, jpeg, ofa;          // 0..1
  Curve sm_activity, sm_occupancy, tensor_activity;              // 0..1, told by GPM
  Curve pcie_sent, pcie_received, nvlink_sent, nvlink_received;  // bytes a second, of all links together
  ClockSpec graphics_clock, memory_clock, video_clock;
  double idle_watts = 0, busy_watts = 0;
  double power_limit = 0, power_default = 0, power_min = 0, power_max = 0;  // 0: not told
  double idle_celsius = 30, busy_celsius = 65;
  int slowdown_celsius = 0, shutdown_celsius = 0;  // 0: not told
  bool memory_temperature = false;
  int fans = 0;

  int pcie_generation = 0, pcie_generation_max = 0, pcie_width = 0, pcie_width_max = 0;
  NvlinkShape nvlink = NvlinkShape::none;
  int nvlinks = 0;

  std::optional<bool> ecc;  // nothing: not supported
  bool row_remapping = false;
  bool mig = false;
  bool persistence = true;
  bool display = false;
  int compute_mode = 0;  // as NVML counts: 0 default, 2 prohibited, 3 exclusive process
  std::vector<MigSpec> instances;

  bool unified_memory() const { return facts->unified_memory; }
};

struct ProcessSpec {
  std::int64_t pid = 0;
  std::vector<int> gpus;
  std::optional<int> instance;  // position in GpuSpec::instances
  std::uint8_t kind = 1;        // bits: 1 compute, 2 graphics, 4 MPS
  std::string user, command, executable, cgroup;
  std::int64_t memory = 0;                  // bytes on each GPU
  Curve sm, memory_load, encoder, decoder;  // 0..1
  Interval interval;
  double started_before = 0;  // how many seconds before the host's start it had begun
  std::int64_t host_memory = 0;
  double cpu_cores = 0;
  std::optional<std::int64_t> pid_here;
};

enum class FaultKind {
  lost,           // rc 15 of every call for the GPU
  needs_reset,    // rc 16
  no_permission,  // rc 4, already for the handle
  failed,         // rc 999
  xid,            // an event, and an entry of the kernel's log
  ecc,            // corrected and uncorrected errors appear
  remap,          // rows are remapped
  throttle,       // reasons, and lower clocks
  hang,           // calls do not return
  slow,           // calls take so many microseconds
  not_loaded,     // no driver (rc 9); handles from before are worth nothing afterwards
  mismatch,       // library and kernel module are of different versions (rc 18)
  asleep,         // the kernel has suspended it; told by its files, not by NVML, whose calls would wake it
};

struct Fault {
  FaultKind kind = FaultKind::lost;
  std::vector<int> gpus;  // empty: the host, which is to say all
  Interval interval;
  std::string function;  // hang, slow: without "_v2", all versions of it; empty: all functions
  int code = 0;          // xid
  std::int64_t corrected = 0, uncorrected = 0;
  bool pending = false, failure = false;  // remap
  std::uint64_t reasons = 0;              // throttle: bits of nvmlClocksEventReasons
  double clock_share = 1;                 // throttle: of the clock that the load would have
  std::int64_t microseconds = 0;          // slow

  bool concerns(int gpu) const;
};

enum class ProcessLayout { of_the_symbol, early_535 };

// The driver and its habits.
struct DriverSpec {
  std::string version = "580.95.05";
  std::string library_version;  // as version, unless it is a mismatch
  int cuda = 13000;             // 1000 * major + 10 * minor
  // Symbols that came with a later driver branch than this are missing; 0: none.
  int generation = 0;
  std::vector<std::string> missing;  // and these; a last '*' stands for any ending
  bool strict_versions = false;      // a struct's version must be the whole word (else rc 25)
  ProcessLayout process_layout = ProcessLayout::of_the_symbol;
  bool process_memory_told = true;   // false: 0xFFFFFFFFFFFFFFFF, as under WDDM and WSL2
  bool process_samples_told = true;  // false: utilisation of processes is not supported
  bool impossible_samples = false;   // of dead pids, of 37100 %
  bool blank_values = false;         // sentinels in the place of values
};

struct Scenario {
  std::string name, summary, hostname;
  DriverSpec driver;
  int numa_nodes = 1, cpus = 16;
  std::int64_t memory_total = 0, memory_used = 0;  // of the host; used: without what unified GPUs hold
  std::optional<double> stopped_at;                // the clock stands
  std::int64_t pcie_throughput_microseconds = 20'000;
  bool pid_namespace = false;  // the reader is in a PID namespace of its own: pids of the host mean nothing to it
  std::vector<GpuSpec> gpus;
  std::vector<ProcessSpec> processes;
  std::vector<Fault> faults;
};

Result<Scenario> parse_scenario(std::string_view text, std::string_view origin);

}  // namespace gpuwright::sim
