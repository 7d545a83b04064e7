// MIG: the instances that a GPU is cut into, with their memory and activity.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "device/nvml/card.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr std::int64_t kListPeriod = 5'000'000'000;
constexpr unsigned kMostSlices = 64;

// "1g.10gb" of "NVIDIA H100 80GB HBM3 MIG 1g.10gb"; else from the slices and memory that it has.
Reading<std::string> profile_of(Asker& ask, nvml::Device handle, const Reading<nvml::DeviceAttributes>& attributes) {
  std::array<char, nvml::kNameSize> buffer{};
  const nvml::Return code = ask(ask.functions().nvmlDeviceGetName, handle, buffer.data(), nvml::kNameSize);
  const Reading<std::string> name = text(code, buffer.data(), buffer.size());
  if (name)
    if (const std::size_t at = name->find("MIG "); at != std::string::npos) return name->substr(at + 4);
  if (!attributes) return attributes.why();
  const auto gigabytes = static_cast<long long>(std::ceil(static_cast<double>(attributes->memory_mib) / 1024.0));
  if (attributes->compute_instance_slices != attributes->gpu_instance_slices)
    return fmt::format("{}c.{}g.{}gb", attributes->compute_instance_slices, attributes->gpu_instance_slices, gigabytes);
  return fmt::format("{}g.{}gb", attributes->gpu_instance_slices, gigabytes);
}

Reading<nvml::DeviceAttributes> attributes_of(Asker& ask, nvml::Device handle) {
  nvml::DeviceAttributes attributes{};
  nvml::Return code = ask(ask.functions().nvmlDeviceGetAttributes_v2, handle, &attributes);
  if (try_the_older(code)) code = ask(ask.functions().nvmlDeviceGetAttributes, handle, &attributes);
  if (code != nvml::kSuccess) return why_of(code);
  return attributes;
}

bool read_slice_facts(Slice& slice, Asker& ask) {
  const Functions& f = ask.functions();
  unsigned gpu_instance = 0, compute_instance = 0;
  if (ask(f.nvmlDeviceGetGpuInstanceId, slice.handle, &gpu_instance) != nvml::kSuccess) return false;
  if (ask(f.nvmlDeviceGetComputeInstanceId, slice.handle, &compute_instance) != nvml::kSuccess) return false;
  slice.facts.gpu_instance = static_cast<int>(gpu_instance);
  slice.facts.compute_instance = static_cast<int>(compute_instance);
  std::array<char, nvml::kUuidSize> uuid{};
  const nvml::Return code = ask(f.nvmlDeviceGetUUID, slice.handle, uuid.data(), nvml::kUuidSize);
  slice.facts.uuid = text(code, uuid.data(), uuid.size());
  const auto attributes = attributes_of(ask, slice.handle);
  slice.facts.profile = profile_of(ask, slice.handle, attributes);
  slice.facts.multiprocessors =
      attributes ? count32(nvml::kSuccess, attributes->multiprocessors) : Reading<std::int64_t>(attributes.why());
  return true;
}

// Slots that hold no instance answer NOT_FOUND (or INVALID_ARGUMENT) and are passed over.
void list_slices(Card& card, Asker& ask) {
  const Functions& f = ask.functions();
  unsigned most = 0;
  if (ask(f.nvmlDeviceGetMaxMigDeviceCount, card.handle, &most) != nvml::kSuccess) most = 0;
  std::vector<Slice> found;
  for (unsigned i = 0; i < std::min(most, kMostSlices) && ask.fine(); ++i) {
    Slice slice;
    if (ask(f.nvmlDeviceGetMigDeviceHandleByIndex, card.handle, i, &slice.handle) != nvml::kSuccess) continue;
    const auto known = std::find_if(card.slices.begin(), card.slices.end(),
                                    [&slice](const Slice& other) { return other.handle == slice.handle; });
    if (known != card.slices.end()) {
      found.push_back(std::move(*known));
      card.slices.erase(known);
    } else if (read_slice_facts(slice, ask)) {
      found.push_back(std::move(slice));
    }
  }
  for (Slice& gone : card.slices) gone.activity.release(ask);
  card.slices = std::move(found);
}

// INVALID_ARGUMENT: the instance is gone.
bool read_slice(const Card& card, Slice& slice, Asker& ask, const Round& round, MigInstance& row) {
  row = slice.facts;
  const MemoryReadings memory = read_memory_of(ask, slice.handle);
  if (memory.code == nvml::kInvalidArgument || memory.code == nvml::kNotFound) return false;
  row.memory_total = memory.total;
  row.memory_used = memory.used;
  row.memory_free = memory.free;
  if (!round.wants.activity) return true;
  const Activity activity =
      slice.activity.read(ask, card.handle, static_cast<unsigned>(slice.facts.gpu_instance), round.now_ns);
  row.graphics_activity = activity.graphics;
  row.sm_activity = activity.sm;
  row.sm_occupancy = activity.occupancy;
  row.tensor_activity = activity.tensor;
  return true;
}

// False when an instance is gone, so that the list is out of date.
bool read_all(Card& card, Asker& ask, const Round& round) {
  card.row.mig_instances.clear();
  for (Slice& slice : card.slices) {
    MigInstance row;
    if (!read_slice(card, slice, ask, round, row)) return false;
    card.row.mig_instances.push_back(std::move(row));
    if (!ask.fine()) return true;
  }
  return true;
}

}  // namespace

void read_slices(Card& card, CardAsker& ask, const Round& round) {
  Asker& plain = ask.plain();
  if (!card.mig_on) {
    for (Slice& gone : card.slices) gone.activity.release(plain);
    card.slices.clear();
    card.row.mig_instances.clear();
    card.slices_read_ns.reset();
    return;
  }
  if (due(card.slices_read_ns, round.now_ns, kListPeriod)) {
    card.slices_read_ns = round.now_ns;
    list_slices(card, plain);
  }
  if (read_all(card, plain, round)) return;
  // Forget the handles: the library may give the same ones to other instances.
  for (Slice& gone : card.slices) gone.activity.release(plain);
  card.slices.clear();
  list_slices(card, plain);
  if (!read_all(card, plain, round)) card.slices_read_ns.reset();
}

void read_mig_mode(Card& card, CardAsker& ask) {
  unsigned now = 0, pending = 0;
  const nvml::Return code = ask(ask.functions().nvmlDeviceGetMigMode, &now, &pending);
  card.row.mig_mode = yes_or_no(code, now);
  const bool on = card.row.mig_mode.value_or(false);
  if (on == card.mig_on) return;
  card.mig_on = on;
  card.slices_read_ns.reset();
  // What a whole GPU refuses is not what a divided one refuses.
  card.refused.clear();
}

}  // namespace gpuwright::device::nvidia
