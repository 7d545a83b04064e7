// The answer of this room. Per GPU: a peak is the maximum over named instants of what is live then; each instant is a
// list of components; each component is a range (low, expected, high) with the formula and the source behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace gpuwright::fit {

// Who would see the bytes. Each meter sees all that the ones before it see.
enum class Meter : std::uint8_t {
  tensor,     // the sum of tensors or buffers, as llama.cpp prints them
  allocated,  // torch.cuda.max_memory_allocated
  reserved,   // torch.cuda.max_memory_reserved: with the allocator's slack
  device,     // nvidia-smi: with the CUDA context, libraries, NCCL, graphs
};
std::string_view name_of(Meter meter);

enum class ComponentKind : std::uint8_t {
  weights,
  kv_cache,
  recurrent_state,
  compute_buffer,  // llama.cpp's graph allocation
  activations,     // torch engines: live tensors of one forward step
  logits,
  vision,         // projector weights and its own buffers
  communication,  // NCCL
  graphs,         // captured CUDA graphs
  allocator,      // reserved but not allocated
  runtime,        // context, libraries, kernels
  output_buffer,  // host copy of the logits
  // Training
  gradients,
  master_weights,       // fp32 copies that the optimizer updates
  optimizer_state,      // moments, and the step's own temporaries
  adapters,             // LoRA and DoRA matrices
  dequantised_weights,  // one quantised linear at a time, in 16 bit
  sharding_buffers,     // ZeRO buckets, gathered layers of FSDP
};
inline constexpr int kComponentKinds = 18;
std::string_view json_key(ComponentKind kind);  // "weights_bytes"
std::string_view label_of(ComponentKind kind);  // "weights"

struct Component {
  ComponentKind kind = ComponentKind::weights;
  Meter first_seen_by = Meter::tensor;
  Bytes low, expected, high;
  std::string formula;  // with its numbers: "32 layers x 8 kv heads x (128 + 128) x 2 B x 8,192 tokens"
  std::string source;   // where the formula or constant comes from

  static Component exact(ComponentKind kind, Meter meter, Bytes bytes, std::string formula, std::string source) {
    return {kind, meter, bytes, bytes, bytes, std::move(formula), std::move(source)};
  }
};

struct Range {
  Bytes low, expected, high;
};

struct Instant {
  std::string name;  // "load", "prefill", "decode end"
  std::vector<Component> components;
  std::string knob;  // what lowers this instant, in the engine's own words

  Range total(Meter meter = Meter::device) const;
  Range total_of(ComponentKind kind) const;
};

enum class Verdict : std::uint8_t {
  fits,   // high <= usable
  tight,  // expected <= usable < high
  no,     // usable < expected
};
std::string_view name_of(Verdict verdict);

struct GpuEstimate {
  std::string gpu;  // name of the target
  int rank = 0;
  Bytes usable;  // what the job may take here: usable memory less the reserve, or the engine's own budget
  std::string usable_formula;
  Meter meter = Meter::device;
  std::vector<Instant> instants;
  std::size_t binding = 0;  // index of the instant with the largest expected total
  // The best verdict possible whatever the bytes say: `no` where the engine refuses to start as asked, `tight` where it
  // starts only with another option. The estimate's notes tell why.
  Verdict at_best = Verdict::fits;
  Verdict verdict = Verdict::no;

  const Instant& peak() const { return instants[binding]; }
};

// A count that an engine derives from memory: vLLM's blocks, tokens of cache, concurrency.
struct Capacity {
  std::string name;  // "kv_cache_blocks"
  std::int64_t low = 0, expected = 0, high = 0;
  std::string formula;
  std::string source;
};

struct Advice {
  std::string change;  // "quantise the KV cache: --cache-type-k q8_0 --cache-type-v q8_0"
  std::string cost;    // what it costs: "half the cache precision, little measured loss"
  Bytes saves;         // of the worst GPU's expected peak
  Verdict verdict_after = Verdict::no;
};

struct Estimate {
  std::vector<GpuEstimate> per_gpu;
  std::vector<Component> host;  // pinned and pageable memory of the process's own buffers
  std::vector<Capacity> capacities;
  std::vector<std::string> notes;  // assumptions and what was left out, one sentence each
  std::vector<Advice> advice;

  Verdict verdict() const;  // the worst of all GPUs
  Bytes host_bytes() const;
};

}  // namespace gpuwright::fit
