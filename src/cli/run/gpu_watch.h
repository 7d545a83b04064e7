// The GPUs while the job runs: which of them are the job's, the memory that it holds on each, and what they did.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/live/live.h"
#include "cli/run/curve.h"
#include "cli/run/job_processes.h"
#include "device/report.h"

namespace gpuwright::cli {

// How it is known that a GPU is the job's.
enum class Claim : std::uint8_t {
  none,
  process,  // a process of the job was on it
  growth,   // the driver tells no process of the job, but memory on the GPU grew while the job ran
};

struct WatchedGpu {
  device::Gpu gpu;        // as it was seen last when it answered
  device::State state{};  // now
  std::string state_detail;
  Claim claim = Claim::none;
  Curve memory;                   // what the job held; of a claim by growth, what was used
  std::optional<Bytes> at_start;  // used when the job began
  bool shared = false;            // processes of others were on it, too
};

struct SeenXid {
  int gpu = 0;
  std::string pci_address;  // empty where it is not known
  device::XidEvent event;
  bool operator==(const SeenXid&) const = default;
};

// What is known of the job's own use of the host, at the last look.
struct HostUse {
  double cpu_seconds = 0, cpu_seconds_at_claim = 0;  // claim: when the job came upon its first GPU
  double at_seconds = 0, claim_seconds = 0;          // since its start
  Bytes resident, resident_peak;
  int processes = 0;  // 0: nothing was seen of it
  std::optional<Bytes> host_total, host_available;
};

struct Watched {
  std::string hostname, simulated, error;  // error: why no GPU was read at the end (--gpu names none)
  std::int64_t snapshots = 0;
  std::vector<WatchedGpu> gpus;
  std::vector<device::SourceReport> sources;
  std::vector<SeenXid> xids;  // of the time of the job
  device::Report report;      // since the job came upon its first GPU; else of the whole time
  HostUse host;
  std::set<pid_t> pids;  // of the job

  std::vector<const WatchedGpu*> of_job() const;
};

struct WatchPace {
  std::optional<double> seconds;  // nothing: four times a second for the first 10 s, then once
};

// Reads in a thread of its own.
class GpuWatch {
 public:
  GpuWatch(std::unique_ptr<Feed> feed, WatchPace pace, JobProcesses job);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  // The job has ended. Does not wait for a driver that hangs.
  Watched finish();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace gpuwright::cli
