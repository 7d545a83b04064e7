// What DRM drivers tell of each open file in /proc/PID/fdinfo: whose memory and engines a process uses.
// Format: Linux, Documentation/gpu/drm-usage-stats.rst.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "device/reading.h"

namespace gpuwright::device {

struct DrmEngine {
  std::optional<std::int64_t> busy_ns;               // drm-engine-<name>
  std::optional<std::int64_t> cycles, total_cycles;  // drm-cycles-<name>, drm-total-cycles-<name>: xe
  std::int64_t capacity = 1;                         // so many hardware engines stand behind the name
};

struct DrmClient {
  std::string driver;       // "amdgpu", "i915", "xe"
  std::string pci_address;  // "0000:03:00.0"; empty where the driver tells none
  std::optional<std::int64_t> id;
  std::map<std::string, DrmEngine, std::less<>> engines;
  // What the client holds in a region ("vram", "gtt", "local0"): resident where that is told, else all it allocated.
  std::map<std::string, Bytes, std::less<>> memory;
};

// Nothing when the text is not that of a DRM file. Values that are no numbers, negative or too large are left out.
std::optional<DrmClient> parse_fdinfo(std::string_view text);

struct FoundClient {
  std::int64_t pid = 0;
  DrmClient client;
};

// One pass over root/proc for all drivers. Files of devices that sleep are not read: xe wakes the device for it.
// Most processes never open a GPU: one without is looked at again after some seconds only.
class FdinfoScan {
 public:
  explicit FdinfoScan(std::string root) : root_(std::move(root)) {}
  // Looks once per moment (Snapshot::monotonic_ns); 0 looks each time.
  const std::vector<FoundClient>& clients(std::int64_t moment);
  // Processes whose files this user may not see.
  int hidden() const { return hidden_; }

 private:
  void look();
  void look_at(std::int64_t pid);
  void read_captured(std::int64_t pid, const std::string& folder);
  void read_into(std::int64_t pid, const std::string& path);
  void find_sleeping_nodes();

  std::string root_;
  std::int64_t moment_ = 0;
  std::vector<FoundClient> clients_;
  std::map<std::int64_t, std::int64_t> without_gpu_;  // pid, and when it was looked at
  std::set<std::string> sleeping_nodes_;              // "/dev/dri/renderD128"
  int hidden_ = 0;
};
// The one that all sources of this process share for a root.
std::shared_ptr<FdinfoScan> shared_fdinfo_scan(const std::string& root);

// What one process does on one device, all its clients together.
struct DrmProcess {
  std::int64_t pid = 0;
  std::string pci_address;
  std::map<std::string, Bytes, std::less<>> memory;
  std::map<std::string, Reading<Ratio>, std::less<>> engines;  // by difference to the pass before
  std::set<std::string, std::less<>> used;                     // engines that it ever worked on
};

// Turns counters into shares of time. A client that several processes or descriptors hold counts once (for the lowest
// pid); a counter that steps back is taken for its largest value so far.
class DrmUsage {
 public:
  // `driver`: whose clients are taken. `now` is in nanoseconds of a clock that does not jump.
  std::vector<DrmProcess> update(const std::vector<FoundClient>& clients, std::string_view driver, std::int64_t now);

 private:
  using Key = std::pair<std::string, std::int64_t>;  // device, client
  struct Counters {
    std::map<std::string, DrmEngine, std::less<>> engines;
    std::int64_t at = 0;
  };
  static Reading<Ratio> share(const DrmEngine& before, const DrmEngine& now, std::int64_t nanoseconds);

  std::map<Key, Counters> before_;
};

}  // namespace gpuwright::device
