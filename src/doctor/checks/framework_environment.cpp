// fw.visible, fw.alloc, fw.numpy: variables and packages that change what a framework sees.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/rules/facts.h"
#include "base/text.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/software_advice.h"

namespace gpuwright::doctor {
namespace {

// How many of the listed devices are left: CUDA stops at the first entry that names none.
// CUDA C++ Programming Guide, "CUDA Environment Variables": CUDA_VISIBLE_DEVICES.
struct Visible {
  std::size_t count = 0;
  std::string stopped_at;  // the entry that names no device; empty: all are good
};

bool names_a_device(std::string_view entry, std::int64_t gpus, const device::Snapshot* snapshot) {
  if (const auto index = to_integer(entry)) return *index >= 0 && (gpus == 0 || *index < gpus);
  if (!entry.starts_with("GPU-") && !entry.starts_with("MIG-")) return false;
  if (snapshot == nullptr || entry.starts_with("MIG-")) return true;  // not known: taken for one
  bool any_known = false;
  for (const device::Gpu& gpu : snapshot->gpus) {
    if (!gpu.uuid) continue;
    any_known = true;
    if (gpu.uuid->starts_with(entry)) return true;
  }
  return !any_known;
}

Visible visible_of(std::string_view list, std::int64_t gpus, const device::Snapshot* snapshot) {
  Visible visible;
  for (std::string_view entry : split(list, ',')) {
    entry = trim(entry);
    if (!names_a_device(entry, gpus, snapshot)) {
      visible.stopped_at = entry.empty() ? "(empty)" : std::string(entry);
      break;
    }
    ++visible.count;
  }
  return visible;
}

void check_variable(const Machine& machine, const char* name, std::int64_t gpus, Outcome& outcome) {
  const auto value = machine.host().variable(name);
  if (!value) return;
  const Visible visible = visible_of(*value, gpus, machine.snapshot());
  if (visible.stopped_at.empty()) return;
  outcome.wrong(visible.count == 0 ? "fw.visible" : "fw.visible.some")
      .fact("variable", name)
      .fact("value", value->empty() ? "\"\"" : *value)
      .fact("entry", visible.stopped_at)
      .fact("gpus", gpus)
      .fact("visible", static_cast<std::int64_t>(visible.count))
      .seen(name, fmt::format("{}={}", name, *value));
}

// Keys of c10/cuda/CUDAAllocatorConfig.cpp, c10/core/AllocatorConfig.cpp (PyTorch 1.10 to 2.9); others end the program
// at its first allocation: "Unrecognized CachingAllocator option".
constexpr std::array<std::string_view, 16> kAllocatorKeys = {"max_split_size_mb",
                                                             "max_non_split_rounding_mb",
                                                             "garbage_collection_threshold",
                                                             "roundup_power2_divisions",
                                                             "roundup_bypass_threshold_mb",
                                                             "backend",
                                                             "expandable_segments",
                                                             "release_lock_on_cudamalloc",
                                                             "release_lock_on_hipmalloc",
                                                             "pinned_use_cuda_host_register",
                                                             "pinned_use_hip_host_register",
                                                             "pinned_num_register_threads",
                                                             "pinned_use_background_threads",
                                                             "pinned_reserve_segment_size_mb",
                                                             "graph_capture_record_stream_reuse",
                                                             "per_process_memory_fraction"};

// "a:1,b:[256:1,512:2],c:true": names before a colon, outside of brackets.
std::vector<std::string> keys_of(std::string_view text) {
  std::vector<std::string> keys;
  int depth = 0;
  std::string word;
  bool in_value = false;
  for (const char c : text) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (depth > 0 || c == ']') continue;
    if (c == ',') {
      if (!in_value && !trim(word).empty()) keys.emplace_back(trim(word));
      word.clear();
      in_value = false;
    } else if (c == ':' && !in_value) {
      keys.emplace_back(trim(word));
      in_value = true;
    } else if (!in_value) {
      word.push_back(c);
    }
  }
  if (!in_value && !trim(word).empty()) keys.emplace_back(trim(word));
  return keys;
}

void check_allocator(const Machine& machine, const char* name, Outcome& outcome) {
  const auto value = machine.host().variable(name);
  if (!value) return;
  for (const std::string& key : keys_of(*value)) {
    if (std::find(kAllocatorKeys.begin(), kAllocatorKeys.end(), key) != kAllocatorKeys.end()) continue;
    const auto near = nearest_name(key, {kAllocatorKeys.begin(), kAllocatorKeys.end()});
    Problem& problem = outcome.wrong("fw.alloc");
    problem.fact("variable", name).fact("value", *value).fact("key", key).fact("meant", near.value_or(""));
    problem.seen(name, fmt::format("{}={}", name, *value));
  }
  if (value->find("expandable_segments:True") != std::string::npos && machine.surroundings().wsl)
    outcome.wrong("fw.alloc.wsl").fact("variable", name).fact("value", *value).seen(name, *value);
}

}  // namespace

Outcome check_fw_visible(const Machine& machine) {
  if (!machine.host().environment_known()) return unknown("the environment is not known");
  Outcome outcome = fine();
  const auto count = [&](device::Vendor vendor) {
    std::int64_t told = 0;
    if (machine.snapshot() != nullptr)
      told = std::count_if(machine.snapshot()->gpus.begin(), machine.snapshot()->gpus.end(),
                           [&](const device::Gpu& gpu) { return gpu.vendor == vendor; });
    return std::max(told, static_cast<std::int64_t>(machine.gpus_of(vendor).size()));
  };
  if (machine.has_nvidia()) check_variable(machine, "CUDA_VISIBLE_DEVICES", count(device::Vendor::nvidia), outcome);
  if (has_amd_board(machine))
    for (const char* name : {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"})
      check_variable(machine, name, count(device::Vendor::amd), outcome);
  return outcome;
}

Outcome check_fw_alloc(const Machine& machine) {
  if (!machine.host().environment_known()) return unknown("the environment is not known");
  Outcome outcome = fine();
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
    check_allocator(machine, name, outcome);
  return outcome;
}

// PyTorch 2.3 was the first whose wheels are built against NumPy 2 (pytorch/pytorch#107302).
Outcome check_fw_numpy(const Machine& machine) {
  Outcome outcome = fine();
  bool any = false;
  for (const Torch& torch : machine.software().torches()) {
    const Package* numpy = torch.environment().find("numpy");
    if (numpy == nullptr) continue;
    any = true;
    if (compare_versions(numpy->version, "2") < 0 || compare_versions(torch.build().version, "2.3") >= 0) continue;
    Problem& problem = outcome.wrong("fw.numpy");
    describe(machine, torch, problem);
    problem.version("numpy_version", numpy->version).seen(numpy->folder, numpy->version);
  }
  return any ? outcome : not_applicable("no PyTorch with NumPy");
}

}  // namespace gpuwright::doctor
