// The processes on a GPU. Three generations of functions exist, whose entries grew from 16 to 24 bytes; early 535
// drivers fill entries of 32 bytes under a name that elsewhere means 24 (wookayin/gpustat#161).
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "device/nvml/card.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr unsigned kSlack = 16;  // processes may start between two calls
constexpr unsigned kMostEntries = 1 << 16;
constexpr int kTries = 4;
constexpr std::int64_t kSampleLife = 1'500'000'000;  // the driver's own period is about a second
constexpr unsigned long long kLookBack = 2'000'000;  // µs

struct Entry {
  unsigned pid = 0;
  unsigned long long memory = nvml::kMemoryNotAvailable;
  unsigned gpu_instance = nvml::kNoInstance, compute_instance = nvml::kNoInstance;
};

// Calls until the buffer suffices. The buffer is raw bytes, as `width` depends on the driver.
template <class Info>
nvml::Return list_with(Asker& ask, const Function<nvml::Return(nvml::Device, unsigned*, Info*)>& function,
                       nvml::Device device, std::size_t width, std::vector<std::byte>& bytes, unsigned& entries) {
  unsigned room = kSlack;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    // One width more than said, should a driver fill wider entries than we believe.
    bytes.assign(room * std::max(width, sizeof(nvml::ProcessDetail)), std::byte{0});
    entries = room;
    const nvml::Return code = ask(function, device, &entries, reinterpret_cast<Info*>(bytes.data()));
    if (code != nvml::kInsufficientSize) {
      entries = std::min(entries, room);
      return code;
    }
    if (entries >= kMostEntries) return nvml::kMemory;
    room = std::max(entries, room) + kSlack;
  }
  return nvml::kInsufficientSize;
}

template <class Info>
std::vector<Entry> entries_of(const std::vector<std::byte>& bytes, unsigned count, std::size_t width) {
  std::vector<Entry> entries;
  for (unsigned i = 0; i < count; ++i) {
    Info info{};
    std::memcpy(&info, bytes.data() + i * width, sizeof info);
    Entry entry{info.pid, info.used_gpu_memory};
    if constexpr (!std::is_same_v<Info, nvml::ProcessInfoV1>) {
      entry.gpu_instance = info.gpu_instance;
      entry.compute_instance = info.compute_instance;
    }
    entries.push_back(entry);
  }
  return entries;
}

// The three generations of one list, newest first.
struct List {
  const Function<nvml::Return(nvml::Device, unsigned*, nvml::ProcessInfoV2*)>&v3, &v2;
  const Function<nvml::Return(nvml::Device, unsigned*, nvml::ProcessInfoV1*)>& v1;
  std::uint8_t kind;
};

nvml::Return ask_list(Asker& ask, const List& list, nvml::Device device, std::vector<Entry>& entries) {
  std::vector<std::byte> bytes;
  unsigned found = 0;
  const std::size_t v3_width =
      ask.library().wide_process_entries() ? sizeof(nvml::ProcessDetail) : sizeof(nvml::ProcessInfoV2);
  nvml::Return code = list_with(ask, list.v3, device, v3_width, bytes, found);
  if (code == nvml::kSuccess) {
    entries = entries_of<nvml::ProcessInfoV2>(bytes, found, v3_width);
    return code;
  }
  if (code != nvml::kFunctionNotFound && code != nvml::kDeprecated) return code;
  code = list_with(ask, list.v2, device, sizeof(nvml::ProcessInfoV2), bytes, found);
  if (code == nvml::kSuccess) {
    entries = entries_of<nvml::ProcessInfoV2>(bytes, found, sizeof(nvml::ProcessInfoV2));
    return code;
  }
  if (code != nvml::kFunctionNotFound && code != nvml::kDeprecated) return code;
  code = list_with(ask, list.v1, device, sizeof(nvml::ProcessInfoV1), bytes, found);
  if (code == nvml::kSuccess) entries = entries_of<nvml::ProcessInfoV1>(bytes, found, sizeof(nvml::ProcessInfoV1));
  return code;
}

Reading<Bytes> memory_of(const Card& card, const Entry& entry) {
  // Under WDDM (WSL2 too) Windows manages the memory and the driver does not know.
  if (entry.memory == nvml::kMemoryNotAvailable) return Why::not_supported;
  const Reading<Bytes> memory = byte_count(nvml::kSuccess, entry.memory);
  if (memory && card.row.memory_total && *memory > *card.row.memory_total) return Why::implausible;
  return memory;
}

Reading<std::int64_t> instance_of(const Card& card, unsigned id) {
  if (id == nvml::kNoInstance) return card.mig_on ? Why::no_data : Why::not_supported;
  return count32(nvml::kSuccess, id);
}

// A process that computes and draws stands in both lists with the same memory and becomes one row.
void merge(const Card& card, const std::vector<Entry>& entries, std::uint8_t kind, std::vector<Process>& processes) {
  for (const Entry& entry : entries) {
    const Reading<Bytes> memory = memory_of(card, entry);
    const Reading<std::int64_t> gpu_instance = instance_of(card, entry.gpu_instance);
    const Reading<std::int64_t> compute_instance = instance_of(card, entry.compute_instance);
    const auto known = std::find_if(processes.begin(), processes.end(), [&](const Process& other) {
      return other.pid == entry.pid && other.gpu_instance == gpu_instance && other.compute_instance == compute_instance;
    });
    if (known != processes.end()) {
      known->kind = static_cast<std::uint8_t>(known->kind | kind);
      if (!known->memory) known->memory = memory;
      continue;
    }
    Process process;
    process.pid = entry.pid;
    process.kind = kind;
    process.memory = memory;
    process.gpu_instance = gpu_instance;
    process.compute_instance = compute_instance;
    processes.push_back(std::move(process));
  }
}

// Lists of one device or instance handle. Processes that draw, or that go through MPS, are asked for in every read
// where there are any, and else every two seconds: on a busy GPU the first of these lists has been seen to take 4.5 ms
// (flightlessmango/MangoHud#2104).
void add_lists(Card& card, Asker& ask, nvml::Device device, const Slice* slice, std::int64_t now_ns,
               std::vector<Process>& processes, nvml::Return& first_code) {
  const Functions& f = ask.functions();
  const std::array<List, 3> lists = {
      List{f.nvmlDeviceGetComputeRunningProcesses_v3, f.nvmlDeviceGetComputeRunningProcesses_v2,
           f.nvmlDeviceGetComputeRunningProcesses, process_kind::kCompute},
      List{f.nvmlDeviceGetGraphicsRunningProcesses_v3, f.nvmlDeviceGetGraphicsRunningProcesses_v2,
           f.nvmlDeviceGetGraphicsRunningProcesses, process_kind::kGraphics},
      List{f.nvmlDeviceGetMPSComputeRunningProcesses_v3, f.nvmlDeviceGetMPSComputeRunningProcesses_v2,
           f.nvmlDeviceGetMPSComputeRunningProcesses, process_kind::kMps}};
  bool first = true;
  for (const List& list : lists) {
    if (!ask.fine()) return;
    const auto empty_since = card.empty_lists.find(list.kind);
    const bool skip =
        slice == nullptr && empty_since != card.empty_lists.end() && !due(empty_since->second, now_ns, kSlowPeriod);
    if (skip) continue;
    std::vector<Entry> entries;
    const nvml::Return code = ask_list(ask, list, device, entries);
    if (list.kind != process_kind::kCompute && entries.empty()) card.empty_lists[list.kind] = now_ns;
    if (list.kind != process_kind::kCompute && !entries.empty()) card.empty_lists.erase(list.kind);
    if (std::exchange(first, false)) first_code = code;
    if (slice != nullptr)
      for (Entry& entry : entries) {
        entry.gpu_instance = static_cast<unsigned>(slice->facts.gpu_instance);
        entry.compute_instance = static_cast<unsigned>(slice->facts.compute_instance);
      }
    merge(card, entries, list.kind, processes);
  }
}

}  // namespace

nvml::Return read_processes(Card& card, CardAsker& ask, const Round& round, std::vector<Process>& processes) {
  Asker& plain = ask.plain();
  nvml::Return code = nvml::kSuccess;
  add_lists(card, plain, card.handle, nullptr, round.now_ns, processes, code);
  const bool told_instances = std::all_of(processes.begin(), processes.end(),
                                          [](const Process& process) { return process.gpu_instance.known(); });
  // Without the right to ask for the whole GPU, each instance can be asked; version 1 does not tell the instance.
  if (card.mig_on && (code != nvml::kSuccess || !told_instances)) {
    processes.clear();
    for (const Slice& slice : card.slices) add_lists(card, plain, slice.handle, &slice, round.now_ns, processes, code);
  }
  std::stable_sort(processes.begin(), processes.end(),
                   [](const Process& a, const Process& b) { return a.pid < b.pid; });
  return code;
}

namespace {

bool is_plausible(const nvml::ProcessUtilizationSample& sample) {
  return std::max({sample.sm, sample.memory, sample.encoder, sample.decoder}) <= 100;
}

// Samples since the last look, into card.samples. Only a process that did something in a period has a sample.
nvml::Return take_samples(Card& card, CardAsker& ask, const Round& round) {
  const auto now_us = static_cast<unsigned long long>(std::max<std::int64_t>(round.time.nanoseconds / 1000, 0));
  const unsigned long long since = std::max(card.last_sample_us, now_us > kLookBack ? now_us - kLookBack : 0);
  std::vector<nvml::ProcessUtilizationSample> buffer;
  unsigned room = kSlack * 4, found = 0;
  nvml::Return code = nvml::kInsufficientSize;
  for (int attempt = 0; attempt < kTries && code == nvml::kInsufficientSize; ++attempt) {
    buffer.assign(room, {});
    found = room;
    code = ask(ask.functions().nvmlDeviceGetProcessUtilization, buffer.data(), &found, since);
    if (code != nvml::kInsufficientSize) break;
    if (found >= kMostEntries) return nvml::kMemory;
    room = std::max(found, room) + kSlack;
  }
  if (code != nvml::kSuccess) return code;
  buffer.resize(std::min(found, room));
  for (const auto& sample : buffer) {
    if (sample.timestamp_us <= since) continue;
    card.last_sample_us = std::max(card.last_sample_us, sample.timestamp_us);
    // Samples such as 37100 % (Syllo/nvtop#110) are dropped where a good one is known.
    if (!is_plausible(sample) && card.samples.contains(sample.pid)) continue;
    ProcessSample& kept = card.samples[sample.pid];
    if (sample.timestamp_us >= kept.sample.timestamp_us) kept = {sample, round.now_ns};
  }
  return code;
}

void tell(Process& process, const Reading<Ratio>& value) {
  process.sm_utilization = process.memory_utilization = process.encoder_utilization = process.decoder_utilization =
      value;
}

void tell(Process& process, const nvml::ProcessUtilizationSample& sample) {
  process.sm_utilization = percent(nvml::kSuccess, sample.sm);
  process.memory_utilization = percent(nvml::kSuccess, sample.memory);
  process.encoder_utilization = percent(nvml::kSuccess, sample.encoder);
  process.decoder_utilization = percent(nvml::kSuccess, sample.decoder);
}

// Drivers of Blackwell have been seen to answer 0 for each process of a busy GPU (Project-HAMi/HAMi#2015).
bool all_idle_on_a_busy_gpu(const Card& card, const std::vector<Process>& processes) {
  if (card.architecture < nvml::kBlackwell) return false;
  return card.row.utilization.value_or(Ratio{0}).value > 0 &&
         std::all_of(processes.begin(), processes.end(),
                     [](const Process& process) { return process.sm_utilization.value_or(Ratio{0}).value == 0; });
}

}  // namespace

void read_process_utilization(Card& card, CardAsker& ask, const Round& round, std::vector<Process>& processes) {
  if (!round.wants.process_utilization || processes.empty()) return;
  if (card.mig_on) {
    for (Process& process : processes) tell(process, Why::in_mig_mode);
    return;
  }
  const nvml::Return code = take_samples(card, ask, round);
  // NOT_FOUND: no process has done anything since.
  if (code != nvml::kSuccess && code != nvml::kNotFound) {
    for (Process& process : processes) tell(process, why_of(code));
    return;
  }
  std::erase_if(card.samples, [&](const auto& kept) {
    const bool old = round.now_ns < kept.second.read_ns || round.now_ns - kept.second.read_ns > kSampleLife;
    return old || std::none_of(processes.begin(), processes.end(),
                               [&](const Process& process) { return process.pid == kept.first; });
  });
  for (Process& process : processes) {
    const auto kept = card.samples.find(static_cast<unsigned>(process.pid));
    if (kept == card.samples.end())
      tell(process, Ratio{0});
    else
      tell(process, kept->second.sample);
  }
  if (all_idle_on_a_busy_gpu(card, processes))
    for (Process& process : processes) tell(process, Why::no_data);
}

}  // namespace gpuwright::device::nvidia
