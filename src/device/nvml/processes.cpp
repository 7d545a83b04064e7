// The processes on a GPU: one row each, with what it holds and how busy it keeps the GPU.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "device/nvml/card.h"

namespace gpuwright::device::nvidia {
namespace {

constexpr unsigned kSlack = 64;  // more processes may have been busy than are running
constexpr unsigned kMostSamples = 1 << 16;
constexpr int kTries = 4;
constexpr std::int64_t kSampleLife = 1'500'000'000;  // the driver's own period is about a second
constexpr unsigned long long kLookBack = 2'000'000;  // µs

Reading<Bytes> memory_of(const Card& card, const ProcessEntry& entry) {
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
void merge(const Card& card, const std::vector<ProcessEntry>& entries, std::uint8_t kind,
           std::vector<Process>& processes) {
  for (const ProcessEntry& entry : entries) {
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

constexpr std::array kKinds = {process_kind::kCompute, process_kind::kGraphics, process_kind::kMps};

// Without the right to ask for the whole GPU, each instance can be asked; version 1 does not tell the instance.
nvml::Return ask_each_slice(const Card& card, Asker& ask, std::vector<Process>& processes) {
  nvml::Return first = nvml::kSuccess;
  for (const Slice& slice : card.slices)
    for (const std::uint8_t kind : kKinds) {
      if (!ask.fine()) return ask.trouble();
      ProcessList list = ask_process_list(ask, slice.handle, kind);
      if (kind == process_kind::kCompute && first == nvml::kSuccess) first = list.code;
      for (ProcessEntry& entry : list.entries) {
        entry.gpu_instance = static_cast<unsigned>(slice.facts.gpu_instance);
        entry.compute_instance = static_cast<unsigned>(slice.facts.compute_instance);
      }
      merge(card, list.entries, kind, processes);
    }
  return first;
}

}  // namespace

std::vector<std::uint8_t> rare_lists_due(const Card& card, std::int64_t now_ns) {
  std::vector<std::uint8_t> kinds;
  for (const std::uint8_t kind : {process_kind::kGraphics, process_kind::kMps}) {
    const auto empty = card.empty_lists.find(kind);
    if (empty == card.empty_lists.end() || due(empty->second, now_ns, kSlowPeriod)) kinds.push_back(kind);
  }
  return kinds;
}

nvml::Return read_processes(Card& card, CardAsker& ask, const Round& round, const DearAnswers& dear,
                            std::vector<Process>& processes) {
  Asker& plain = ask.plain();
  const ProcessList compute = ask_process_list(plain, card.handle, process_kind::kCompute);
  merge(card, compute.entries, process_kind::kCompute, processes);
  for (const auto& [kind, list] : dear.lists) {
    if (list.entries.empty())
      card.empty_lists[kind] = round.now_ns;
    else
      card.empty_lists.erase(kind);
    merge(card, list.entries, kind, processes);
  }
  nvml::Return code = compute.code;
  const bool told_instances = std::all_of(processes.begin(), processes.end(),
                                          [](const Process& process) { return process.gpu_instance.known(); });
  if (card.mig_on && plain.fine() && (code != nvml::kSuccess || !told_instances)) {
    processes.clear();
    code = ask_each_slice(card, plain, processes);
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
  unsigned room = kSlack, found = 0;
  nvml::Return code = nvml::kInsufficientSize;
  for (int attempt = 0; attempt < kTries && code == nvml::kInsufficientSize; ++attempt) {
    buffer.assign(room, {});
    found = room;
    code = ask(ask.functions().nvmlDeviceGetProcessUtilization, buffer.data(), &found, since);
    if (code != nvml::kInsufficientSize) break;
    if (found >= kMostSamples) return nvml::kMemory;
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
