// Intel GPUs by what the kernel's i915 and xe drivers tell in sysfs, fdinfo and, of local memory, on the device node.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "device/intel/card.h"
#include "device/intel/memory_query.h"
#include "device/source.h"
#include "device/sysfs/attribute.h"
#include "device/sysfs/drm_process.h"
#include "device/sysfs/fdinfo.h"
#include "device/sysfs/host_memory.h"

namespace gpuwright::device {
namespace {

constexpr std::array<std::string_view, 2> kDrivers = {"i915", "xe"};

class IntelSource : public Source {
 public:
  explicit IntelSource(const SourceOptions& options) : options_(options), scan_(shared_fdinfo_scan(options.root)) {}

  std::string_view name() const override { return "intel"; }

  void read(Snapshot& snapshot, CallWatch& watch) override {
    if (options_.simulated) return;
    const std::vector<DrmCard> present = drm_cards(options_.root, {kDrivers[0], kDrivers[1]});
    if (present.empty()) {
      snapshot.sources.push_back({"intel", SourceReport::Outcome::absent, "no GPU with the i915 or xe driver", {}});
      return;
    }
    update_cards(present);
    const std::size_t first = snapshot.gpus.size();
    for (IntelCard& card : cards_) {
      snapshot.gpus.push_back(card.identity());  // the row stays, whatever the reading comes to
      const std::string_view driver = card.card().driver == kDrivers[1] ? kDrivers[1] : kDrivers[0];
      if (watch.forbidden(driver, card.card().number)) continue;
      watch.enter(driver, card.card().number, "reading of the driver's attributes");
      snapshot.gpus.back() = card.read(options_, snapshot.monotonic_ns);
      watch.leave();
    }
    if (options_.wants.processes) {
      watch.enter("intel", -1, "reading of /proc/*/fdinfo");
      read_processes(snapshot, first);
      watch.leave();
    }
    for (const std::string_view driver : kDrivers)
      if (std::any_of(cards_.begin(), cards_.end(), [&](const IntelCard& one) { return one.card().driver == driver; }))
        snapshot.drivers.push_back(driver_of(options_.root, driver));
    report(snapshot, first);
  }

 private:
  void update_cards(const std::vector<DrmCard>& present) {
    const bool all_known =
        present.size() == cards_.size() &&
        std::equal(present.begin(), present.end(), cards_.begin(), [](const DrmCard& a, const IntelCard& b) {
          return a.number == b.card().number && a.pci_address == b.card().pci_address && a.driver == b.card().driver;
        });
    if (all_known) return;
    cards_.clear();
    for (const DrmCard& card : present) cards_.emplace_back(card, options_.root);
  }

  void read_processes(Snapshot& snapshot, std::size_t first) {
    const auto& clients = scan_->clients(snapshot.monotonic_ns);
    std::vector<Bytes> held(snapshot.gpus.size());
    for (std::size_t driver = 0; driver < kDrivers.size(); ++driver)
      for (const DrmProcess& found : usage_[driver].update(clients, kDrivers[driver], snapshot.monotonic_ns))
        for (std::size_t i = first; i < snapshot.gpus.size(); ++i) {
          const Gpu& gpu = snapshot.gpus[i];
          if (gpu.pci_address != found.pci_address || gpu.source != kDrivers[driver]) continue;
          snapshot.processes.push_back(process_of(found, static_cast<int>(i), gpu.unified_memory));
          if (const auto& memory = snapshot.processes.back().memory) held[i] += *memory;
        }
    for (std::size_t i = first; i < snapshot.gpus.size(); ++i)
      if (snapshot.gpus[i].unified_memory && snapshot.gpus[i].state == State::ok)
        share_memory(snapshot.gpus[i], held[i]);
  }

  // Of an integrated GPU: used is what processes hold through it, which only root sees of all of them.
  void share_memory(Gpu& gpu, Bytes held) const {
    gpu.memory_used = scan_->hidden() > 0 ? Reading<Bytes>(Why::no_permission) : Reading<Bytes>(held);
    gpu.host_used = gpu.memory_used.why();
    const HostMemory host = read_host_memory(options_.root);
    if (gpu.memory_used && host.total && host.available)
      gpu.host_used = std::max(*host.total - *host.available - held, Bytes{});
  }

  Process process_of(const DrmProcess& found, int gpu, bool unified) const {
    Process process = drm_process(found, gpu, options_.root);
    // i915 calls its regions local0 and system0, xe vram0, gtt and system.
    const auto memory = unified ? memory_in(found, {"system", "gtt"}) : memory_in(found, {"local", "vram"});
    process.memory = memory ? Reading<Bytes>(*memory) : Why::not_supported;  // i915 tells since Linux 6.8
    process.sm_utilization = busiest(found, {"render", "compute", "rcs", "ccs"});
    process.decoder_utilization = busiest(found, {"video", "vcs"});
    const auto uses = [&](std::string_view engine) { return found.used.contains(engine); };
    if (uses("compute") || uses("ccs")) process.kind |= process_kind::kCompute;
    if (uses("render") || uses("rcs")) process.kind |= process_kind::kGraphics;
    return process;
  }

  void report(Snapshot& snapshot, std::size_t first) const {
    SourceReport report{"intel", SourceReport::Outcome::found, {}, {}};
    report.text = fmt::format("{} GPU{}", cards_.size(), cards_.size() == 1 ? "" : "s");
    const bool needs_perfmon =
        std::any_of(snapshot.gpus.begin() + static_cast<std::ptrdiff_t>(first), snapshot.gpus.end(),
                    [](const Gpu& gpu) { return !gpu.memory_used && gpu.memory_used.why() == Why::needs_perfmon; });
    if (needs_perfmon) {
      report.text += "; the driver tells used memory only with CAP_PERFMON";
      report.hint = "setcap cap_perfmon+ep on the program, or run as root";
    } else if (options_.wants.processes && scan_->hidden() > 0) {
      report.text += "; processes of other users tell nothing to this one";
      report.hint = "run as root to see them";
    }
    snapshot.sources.push_back(std::move(report));
  }

  SourceOptions options_;
  std::vector<IntelCard> cards_;
  std::shared_ptr<FdinfoScan> scan_;
  std::array<DrmUsage, kDrivers.size()> usage_;
};

}  // namespace

std::unique_ptr<Source> intel_source(const SourceOptions& options) {
  return std::make_unique<IntelSource>(options);
}

}  // namespace gpuwright::device
