// AMD GPUs by what the kernel's amdgpu driver tells in sysfs and fdinfo; no ROCm is needed.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "device/amdgpu/card.h"
#include "device/source.h"
#include "device/sysfs/attribute.h"
#include "device/sysfs/drm_process.h"
#include "device/sysfs/fdinfo.h"

namespace gpuwright::device {
namespace {

constexpr const char* kName = "amdgpu";

class AmdgpuSource : public Source {
 public:
  explicit AmdgpuSource(const SourceOptions& options) : options_(options), scan_(shared_fdinfo_scan(options.root)) {}

  std::string_view name() const override { return kName; }

  void read(Snapshot& snapshot, CallWatch& watch) override {
    if (options_.simulated) return;
    const std::vector<DrmCard> present = drm_cards(options_.root, {kName});
    if (present.empty()) return report_absence(snapshot);
    update_cards(present);
    const std::size_t first = snapshot.gpus.size();
    for (AmdCard& card : cards_) {
      const int index = card.card().number;
      snapshot.gpus.push_back(card.identity());  // the row stays, whatever the reading comes to
      if (watch.forbidden(kName, index)) continue;
      watch.enter(kName, index, "reading of amdgpu's attributes");
      snapshot.gpus.back() = card.read(options_, snapshot.monotonic_ns);
      watch.leave();
    }
    if (options_.wants.processes) {
      watch.enter(kName, -1, "reading of /proc/*/fdinfo");
      read_processes(snapshot, first);
      watch.leave();
    }
    snapshot.drivers.push_back(driver_of(options_.root, kName));
    report(snapshot);
  }

 private:
  static void report_absence(Snapshot& snapshot) {
    snapshot.sources.push_back({kName, SourceReport::Outcome::absent, "no GPU with the amdgpu driver", {}});
  }

  void report(Snapshot& snapshot) const {
    SourceReport report{kName, SourceReport::Outcome::found, {}, {}};
    report.text = fmt::format("{} GPU{}", cards_.size(), cards_.size() == 1 ? "" : "s");
    if (options_.wants.processes && scan_->hidden() > 0) {
      report.text += "; processes of other users tell nothing to this one";
      report.hint = "run as root to see them";
    }
    snapshot.sources.push_back(std::move(report));
  }

  // Cards keep what rates need for as long as they are there; a card that came back (reset, rebind) starts anew.
  void update_cards(const std::vector<DrmCard>& present) {
    const auto is_same = [](const DrmCard& a, const DrmCard& b) {
      return a.number == b.number && a.pci_address == b.pci_address && a.id == b.id;
    };
    const bool all_known = present.size() == cards_.size() &&
                           std::equal(present.begin(), present.end(), cards_.begin(),
                                      [&](const DrmCard& a, const AmdCard& b) { return is_same(a, b.card()); });
    if (all_known) return;
    const auto nodes = read_kfd_topology(options_.root);
    cards_.clear();
    for (const DrmCard& card : present) {
      const auto node = nodes.find(card.pci_address);
      cards_.emplace_back(card, node == nodes.end() ? nullptr : &node->second, options_.root);
    }
  }

  void read_processes(Snapshot& snapshot, std::size_t first) {
    std::map<std::pair<std::size_t, std::int64_t>, std::size_t> row_of;  // (GPU, pid) -> processes
    const auto gpu_with = [&](auto&& fits) -> std::optional<std::size_t> {
      for (std::size_t i = first; i < snapshot.gpus.size(); ++i)
        if (fits(snapshot.gpus[i])) return i;
      return std::nullopt;
    };
    for (const DrmProcess& found : usage_.update(scan_->clients(snapshot.monotonic_ns), kName, snapshot.monotonic_ns)) {
      const auto gpu = gpu_with([&](const Gpu& one) { return one.pci_address == found.pci_address; });
      if (!gpu) continue;
      row_of[{*gpu, found.pid}] = snapshot.processes.size();
      snapshot.processes.push_back(process_of(found, static_cast<int>(*gpu), snapshot.gpus[*gpu].unified_memory));
    }
    for (const KfdMemory& kfd : read_kfd_processes(options_.root)) {
      const auto card =
          std::find_if(cards_.begin(), cards_.end(), [&](const AmdCard& one) { return one.kfd_id() == kfd.gpu_id; });
      if (card == cards_.end()) continue;
      const auto gpu = gpu_with([&](const Gpu& one) { return one.pci_address == card->card().pci_address; });
      if (gpu) add_compute_memory(kfd, *gpu, row_of, snapshot);
    }
  }

  Process process_of(const DrmProcess& found, int gpu, bool unified) const {
    Process process = drm_process(found, gpu, options_.root);
    const auto vram = memory_in(found, {"vram"}), gtt = memory_in(found, {"gtt"});
    process.memory = vram ? Reading<Bytes>(*vram) : Why::not_supported;
    if (unified && vram && gtt) process.memory = *vram + *gtt;
    process.sm_utilization = idle_if_untold(busiest(found, {"gfx", "compute"}));
    process.encoder_utilization = idle_if_untold(busiest(found, {"enc", "enc_1"}));
    process.decoder_utilization = idle_if_untold(busiest(found, {"dec", "jpeg"}));
    if (found.used.contains("gfx")) process.kind |= process_kind::kGraphics;
    if (found.used.contains("compute")) process.kind |= process_kind::kCompute;
    return process;
  }

  // The driver leaves out engines that the client never used.
  static Reading<Ratio> idle_if_untold(Reading<Ratio> share) {
    if (!share && share.why() == Why::not_supported) return Ratio{0};
    return share;
  }

  // A compute process of another user, or one whose memory fdinfo does not count.
  static void add_compute_memory(const KfdMemory& kfd, std::size_t gpu,
                                 std::map<std::pair<std::size_t, std::int64_t>, std::size_t>& row_of,
                                 Snapshot& snapshot) {
    const auto [row, is_new] = row_of.try_emplace({gpu, kfd.pid}, snapshot.processes.size());
    if (is_new) {
      if (kfd.memory.count == 0) return static_cast<void>(row_of.erase(row));
      Process process;
      process.gpu = static_cast<int>(gpu);
      process.pid = kfd.pid;
      explain_unread(process, Why::not_visible);
      snapshot.processes.push_back(std::move(process));
    }
    Process& process = snapshot.processes[row->second];
    process.kind |= process_kind::kCompute;
    // ROCm puts work into queues of its own, whose time no engine counts.
    if (process.sm_utilization == Ratio{0}) process.sm_utilization = Why::not_supported;
    if (!process.memory || *process.memory < kfd.memory) process.memory = kfd.memory;
  }

  SourceOptions options_;
  std::vector<AmdCard> cards_;
  std::shared_ptr<FdinfoScan> scan_;
  DrmUsage usage_;
};

}  // namespace

std::unique_ptr<Source> amdgpu_source(const SourceOptions& options) {
  return std::make_unique<AmdgpuSource>(options);
}

}  // namespace gpuwright::device
