#include "device/roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "device/fields.h"

namespace gpuwright::device {
namespace {

constexpr std::array<std::string_view, 11> kIdentity = {
    "name",         "uuid",      "serial",    "pci_address", "pci_id", "vbios", "architecture", "compute_capability",
    "device_minor", "numa_node", "cuda_index"};

bool is_identity(std::string_view name) {
  return std::find(kIdentity.begin(), kIdentity.end(), name) != kIdentity.end();
}

Vendor vendor_of(std::string_view source) {
  if (source == "nvml" || source == "tegra") return Vendor::nvidia;
  if (source == "amdgpu") return Vendor::amd;
  if (source == "i915" || source == "xe") return Vendor::intel;
  if (source == "dcmi") return Vendor::huawei;
  return Vendor::unknown;
}

// Intel's source tells of the devices of two kernel drivers.
bool tells_of(std::string_view entry, std::string_view source) {
  return entry == source || entry == kEverySource || (entry == "intel" && (source == "i915" || source == "xe")) ||
         (entry == "ascend" && source == "dcmi");
}

// What is known of both decides; a device that is lost does not tell its UUID any more, but is still at its place.
bool same_device(const Gpu& a, const Gpu& b) {
  if (a.uuid && b.uuid) return *a.uuid == *b.uuid;
  if (a.pci_address && b.pci_address) return *a.pci_address == *b.pci_address;
  return a.source == b.source && a.vendor_index == b.vendor_index;
}

// Readings of `from` in the order of fields.h, to go along with those of another Gpu.
std::vector<const void*> readings_of(const Gpu& from) {
  std::vector<const void*> readings;
  for_each_reading_of_gpu(from, [&readings](std::string_view, const auto& reading) { readings.push_back(&reading); });
  return readings;
}

// Identity that `gpu` does not tell, as it was told before.
void complete_identity(Gpu& gpu, const Gpu& before) {
  const auto readings = readings_of(before);
  std::size_t at = 0;
  for_each_reading_of_gpu(gpu, [&](std::string_view name, auto& reading) {
    const auto& old = *static_cast<const std::remove_reference_t<decltype(reading)>*>(readings[at++]);
    if (is_identity(name) && !reading && old) reading = old;
  });
  if (gpu.vendor == Vendor::unknown) gpu.vendor = before.vendor;
  if (gpu.catalog_id.empty()) gpu.catalog_id = before.catalog_id;
  gpu.unified_memory |= before.unified_memory;
}

Gpu identity_of(const Gpu& gpu) {
  Gpu identity;
  identity.vendor_index = gpu.vendor_index;
  identity.vendor = gpu.vendor;
  identity.source = gpu.source;
  identity.unified_memory = gpu.unified_memory;
  identity.catalog_id = gpu.catalog_id;
  complete_identity(identity, gpu);
  return identity;
}

Why why_of(State state) {
  switch (state) {
    case State::unresponsive:
      return Why::unresponsive;
    case State::lost:
      return Why::lost;
    default:
      return Why::failed;
  }
}

// A device in trouble shows who it is and nothing that may be old.
void strip(Gpu& gpu, State state, std::string detail) {
  gpu.state = state;
  gpu.state_detail = std::move(detail);
  for_each_reading_of_gpu(gpu, [state](std::string_view name, auto& reading) {
    if (!is_identity(name) || !reading) reading = why_of(state);
  });
  gpu.mig_instances.clear();
  gpu.links.clear();
}

// A source that finds a device lost or in need of a reset without asking it knows more than a silent call.
bool tells_its_own_trouble(const Gpu& gpu) {
  return gpu.state == State::lost || gpu.state == State::needs_reset;
}

const CollectorTrouble* trouble_of(const Gpu& gpu, const std::vector<CollectorTrouble>& troubles) {
  for (const CollectorTrouble& trouble : troubles) {
    if (trouble.place.device >= 0 && trouble.place.source == gpu.source && trouble.place.device == gpu.vendor_index)
      return &trouble;
    if (trouble.place.device < 0 && tells_of(trouble.place.source, gpu.source)) return &trouble;
  }
  return nullptr;
}

State state_after(const CollectorTrouble& trouble) {
  return trouble.kind == CollectorTrouble::Kind::hung ? State::unresponsive : State::failed;
}

// A row that no source told of this time.
void explain_absence(Gpu& gpu, const Snapshot& snapshot) {
  const auto report = std::find_if(snapshot.sources.begin(), snapshot.sources.end(), [&gpu](const SourceReport& each) {
    return tells_of(each.source, gpu.source) && each.outcome != SourceReport::Outcome::found;
  });
  if (report == snapshot.sources.end())
    return strip(gpu, State::lost, fmt::format("{} does not tell of it any more", gpu.source));
  strip(gpu, report->outcome == SourceReport::Outcome::failed ? State::failed : State::lost, report->text);
}

// Events of the kernel's log are found again by each collector; those have the time that they had.
std::vector<XidEvent> joined(std::vector<XidEvent> before, const std::vector<XidEvent>& after) {
  for (const XidEvent& event : after) {
    const auto old =
        std::find_if(before.begin(), before.end(), [&](const XidEvent& e) { return e.code == event.code; });
    if (old == before.end()) {
      before.push_back(event);
    } else if (old->time == event.time) {
      old->count = std::max(old->count, event.count);
    } else {
      old->count += event.count;
      old->time = std::max(old->time, event.time);
    }
  }
  return before;
}

}  // namespace

std::size_t Roster::index_of(const Gpu& gpu, std::vector<bool>& taken) {
  for (std::size_t i = 0; i < known_.size(); ++i)
    if (!taken[i] && same_device(known_[i].gpu, gpu)) return i;
  known_.push_back({identity_of(gpu), {}, {}});
  taken.push_back(false);
  return known_.size() - 1;
}

void Roster::remember(Known& known, const Gpu& gpu) {
  Gpu identity = identity_of(gpu);
  complete_identity(identity, known.gpu);
  known.gpu = std::move(identity);
}

void Roster::learn(const Snapshot& seen) {
  std::vector<bool> taken(known_.size(), false);
  for (const Gpu& gpu : seen.gpus) {
    const std::size_t index = index_of(gpu, taken);
    taken[index] = true;
    remember(known_[index], gpu);
  }
}

void Roster::new_collector() {
  for (Known& known : known_) known.xids_before = joined(std::move(known.xids_before), std::exchange(known.xids, {}));
}

// Devices that hung before anything was told of them have a row, too.
void Roster::add_silent(const std::vector<CollectorTrouble>& troubles) {
  for (const CollectorTrouble& trouble : troubles) {
    if (trouble.place.device < 0) continue;
    Gpu silent;
    silent.source = trouble.place.source;
    silent.vendor_index = trouble.place.device;
    silent.vendor = vendor_of(silent.source);
    const bool known = std::any_of(known_.begin(), known_.end(), [&silent](const Known& each) {
      return each.gpu.source == silent.source && each.gpu.vendor_index == silent.vendor_index;
    });
    if (!known) known_.push_back({std::move(silent), {}, {}});
  }
}

Gpu Roster::row_of(std::size_t index, Gpu* told, const Snapshot& snapshot,
                   const std::vector<CollectorTrouble>& troubles) {
  Known& known = known_[index];
  Gpu gpu = told ? std::move(*told) : known.gpu;
  if (told) known.xids = std::move(gpu.xids);
  gpu.index = static_cast<int>(index);
  gpu.xids = joined(known.xids_before, known.xids);
  const CollectorTrouble* trouble = trouble_of(gpu, troubles);
  if (trouble && !tells_its_own_trouble(gpu)) {
    strip(gpu, state_after(*trouble), trouble->text);
  } else if (!told) {
    explain_absence(gpu, snapshot);
  }
  if (gpu.state != State::ok) complete_identity(gpu, known.gpu);
  return gpu;
}

void Roster::settle(Snapshot& snapshot, const std::vector<CollectorTrouble>& troubles) {
  std::vector<bool> taken(known_.size(), false);
  std::vector<std::size_t> index_at;  // by position in the answer
  for (const Gpu& gpu : snapshot.gpus) {
    index_at.push_back(index_of(gpu, taken));
    taken[index_at.back()] = true;
    remember(known_[index_at.back()], gpu);
  }
  add_silent(troubles);

  std::vector<Gpu*> told(known_.size(), nullptr);
  for (std::size_t i = 0; i < index_at.size(); ++i) told[index_at[i]] = &snapshot.gpus[i];
  std::vector<Gpu> rows;
  rows.reserve(known_.size());
  for (std::size_t index = 0; index < known_.size(); ++index)
    rows.push_back(row_of(index, told[index], snapshot, troubles));

  std::vector<Process> processes;
  for (Process& process : snapshot.processes) {
    if (process.gpu < 0 || static_cast<std::size_t>(process.gpu) >= index_at.size()) continue;
    process.gpu = static_cast<int>(index_at[static_cast<std::size_t>(process.gpu)]);
    const Gpu& gpu = rows[static_cast<std::size_t>(process.gpu)];
    if (!trouble_of(gpu, troubles)) processes.push_back(std::move(process));
  }
  snapshot.gpus = std::move(rows);
  snapshot.processes = std::move(processes);
}

}  // namespace gpuwright::device
