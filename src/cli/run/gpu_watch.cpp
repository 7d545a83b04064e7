#include "cli/run/gpu_watch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "device/sysfs/attribute.h"

namespace gpuwright::cli {
namespace {

using Clock = std::chrono::steady_clock;
using device::Snapshot;

constexpr double kBeginning = 10, kBriskly = 0.25, kCalmly = 1;
constexpr double kShareForLooks = 1000;  // a look at the host's processes takes at most this part of the time
constexpr Bytes kGrowth = Bytes{64ll << 20};
constexpr std::size_t kMostXids = 256;
constexpr std::chrono::milliseconds kPatience{500};

std::optional<Bytes> meminfo(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(at + key.size(), text.find('\n', at) - at - key.size());
  const auto kib = to_integer(trim(line.substr(0, line.find("kB"))));
  return kib ? std::optional(Bytes{*kib * 1024}) : std::nullopt;
}

}  // namespace

std::vector<const WatchedGpu*> Watched::of_job() const {
  std::vector<const WatchedGpu*> result;
  for (const WatchedGpu& one : gpus)
    if (one.claim != Claim::none) result.push_back(&one);
  return result;
}

struct GpuWatch::Shared {
  Shared(WatchPace pace, JobProcesses processes) : pace_(pace), job_(std::move(processes)) {}

  void run(std::unique_ptr<Feed> feed) {
    std::unique_lock lock(mutex_);
    while (!ending_) {
      lock.unlock();
      auto snapshot = feed->next();
      lock.lock();
      take(std::move(snapshot));
      if (due(next_look_)) look();
      changed_.wait_for(lock, std::chrono::duration<double>(interval()), [this] { return ending_; });
    }
    lock.unlock();
    feed.reset();
    lock.lock();
    ended_ = true;
    changed_.notify_all();
  }

  Watched finish() {
    std::unique_lock lock(mutex_);
    look();
    ending_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, kPatience, [this] { return ended_; });
    claim_by_growth();
    watched_.report = reporter_.finish();
    reporter_ = device::Reporter();  // a reading that comes too late goes nowhere
    watched_.pids = job_.pids();
    return std::move(watched_);
  }

 private:
  double now() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  bool due(double seconds) const { return now() >= seconds; }
  double interval() const { return pace_.seconds.value_or(now() < kBeginning ? kBriskly : kCalmly); }

  void take(Result<std::optional<Snapshot>> next) {
    if (!next) {
      watched_.error = next.error().message();
      return;
    }
    if (!*next) return;
    const Snapshot& snapshot = **next;
    if (watched_.snapshots++ == 0) begin(snapshot);
    watched_.sources = snapshot.sources;
    const double seconds = now();
    for (const device::Gpu& gpu : snapshot.gpus) take_gpu(gpu, snapshot, seconds);
    reporter_.add(snapshot);
  }

  void begin(const Snapshot& snapshot) {
    watched_.hostname = snapshot.hostname;
    watched_.simulated = snapshot.simulated;
    first_wall_ns_ = snapshot.time.nanoseconds - static_cast<std::int64_t>(now() * 1e9);
  }

  WatchedGpu& entry_of(const device::Gpu& gpu) {
    const auto found = std::find_if(watched_.gpus.begin(), watched_.gpus.end(),
                                    [&](const WatchedGpu& one) { return one.gpu.index == gpu.index; });
    if (found != watched_.gpus.end()) return *found;
    WatchedGpu& fresh = watched_.gpus.emplace_back();
    fresh.gpu = gpu;
    if (gpu.memory_used) fresh.at_start = *gpu.memory_used;
    return fresh;
  }

  void take_gpu(const device::Gpu& gpu, const Snapshot& snapshot, double seconds) {
    WatchedGpu& entry = entry_of(gpu);
    entry.state = gpu.state;
    entry.state_detail = gpu.state_detail;
    take_xids(gpu);
    if (gpu.state != device::State::ok) return;
    entry.gpu = gpu;
    if (gpu.memory_used) used_[gpu.index].add(seconds, *gpu.memory_used);
    Bytes held;
    bool here = false, all_told = true;
    for (const device::Process& process : snapshot.processes) {
      if (process.gpu != gpu.index) continue;
      if (!is_job(process)) {
        entry.shared = entry.shared || (process.kind & device::process_kind::kCompute) != 0;
        continue;
      }
      here = true;
      if (process.memory)
        held += *process.memory;
      else
        all_told = false;
    }
    if (here && entry.claim == Claim::none) claim(entry, seconds);
    if (entry.claim != Claim::process) return;
    if (all_told)
      entry.memory.add(seconds, held);
    else if (gpu.memory_used)
      entry.memory.add(seconds, *gpu.memory_used);
  }

  // What was read before belongs to the time in which the job had no GPU yet.
  void claim(WatchedGpu& entry, double seconds) {
    entry.claim = Claim::process;
    if (claimed_) return;
    claimed_ = true;
    reporter_ = device::Reporter();
    look();
    watched_.host.claim_seconds = seconds;
    watched_.host.cpu_seconds_at_claim = watched_.host.cpu_seconds;
  }

  // Simulated processes are none of this machine's: those that begin while the job runs stand for its own.
  bool is_job(const device::Process& process) {
    if (watched_.simulated.empty()) return job_.owns(process);
    return process.started && process.started->nanoseconds > first_wall_ns_;
  }

  void take_xids(const device::Gpu& gpu) {
    for (const device::XidEvent& event : gpu.xids) {
      if (event.time.nanoseconds != 0 && event.time.nanoseconds < first_wall_ns_) continue;
      SeenXid seen{gpu.index, gpu.pci_address.value_or(""), event};
      const auto same = std::find_if(watched_.xids.begin(), watched_.xids.end(), [&](const SeenXid& other) {
        return other.gpu == seen.gpu && other.event.code == event.code && other.event.time == event.time;
      });
      if (same != watched_.xids.end())
        same->event.count = event.count;
      else if (watched_.xids.size() < kMostXids)
        watched_.xids.push_back(std::move(seen));
    }
  }

  void look() {
    const double begin = now();
    const JobProcesses::Use use = job_.look();
    const double end = now();
    next_look_ = end + std::max(kCalmly, (end - begin) * kShareForLooks);
    if (use.resident.count == 0) return;  // it has ended: what was seen before counts
    HostUse& host = watched_.host;
    host.cpu_seconds = std::max(host.cpu_seconds, use.cpu_seconds);
    host.at_seconds = end;
    host.resident = use.resident;
    host.resident_peak = std::max(host.resident_peak, use.resident);
    host.processes = use.processes;
    const std::string memory = device::read_start("/proc/meminfo").text;
    host.host_total = meminfo(memory, "MemTotal:");
    host.host_available = meminfo(memory, "MemAvailable:");
  }

  void claim_by_growth() {
    if (claimed_) return;
    for (WatchedGpu& entry : watched_.gpus) {
      const Curve& used = used_[entry.gpu.index];
      if (!entry.at_start || used.empty() || used.peak().size - *entry.at_start < kGrowth) continue;
      entry.claim = Claim::growth;
      entry.memory = used;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false, ended_ = false, claimed_ = false;
  const WatchPace pace_;
  const Clock::time_point began_ = Clock::now();
  std::int64_t first_wall_ns_ = 0;  // when the job began, by the clock of the snapshots
  double next_look_ = 0;
  JobProcesses job_;
  device::Reporter reporter_;
  std::map<int, Curve> used_;  // of each GPU, by whomever
  Watched watched_;
};

GpuWatch::GpuWatch(std::unique_ptr<Feed> feed, WatchPace pace, JobProcesses job)
    : shared_(std::make_shared<Shared>(pace, std::move(job))) {
  std::thread([shared = shared_, feed = std::move(feed)]() mutable { shared->run(std::move(feed)); }).detach();
}

GpuWatch::~GpuWatch() = default;

Watched GpuWatch::finish() {
  return shared_->finish();
}

}  // namespace gpuwright::cli
