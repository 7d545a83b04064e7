#include "fit/estimate.h"

#include <algorithm>
#include <array>

namespace gpuwright::fit {
namespace {

struct KindName {
  std::string_view json_key;
  std::string_view label;
};
constexpr std::array<KindName, kComponentKinds> kKindNames = {{
    {"weights_bytes", "weights"},
    {"kv_cache_bytes", "KV cache"},
    {"recurrent_state_bytes", "recurrent state"},
    {"compute_buffer_bytes", "compute buffer"},
    {"activations_bytes", "activations"},
    {"logits_bytes", "logits"},
    {"vision_bytes", "vision tower"},
    {"communication_bytes", "communication"},
    {"graphs_bytes", "CUDA graphs"},
    {"allocator_bytes", "allocator slack"},
    {"runtime_bytes", "runtime"},
    {"output_buffer_bytes", "output buffer"},
    {"gradients_bytes", "gradients"},
    {"master_weights_bytes", "master weights"},
    {"optimizer_state_bytes", "optimizer state"},
    {"adapters_bytes", "adapters"},
    {"dequantised_weights_bytes", "dequantised weights"},
    {"sharding_buffers_bytes", "sharding buffers"},
}};

void add(Range& range, const Component& component) {
  range.low += component.low;
  range.expected += component.expected;
  range.high += component.high;
}

}  // namespace

std::string_view name_of(Meter meter) {
  constexpr std::array<std::string_view, 4> kNames = {"tensor", "allocated", "reserved", "device"};
  return kNames[static_cast<std::size_t>(meter)];
}

std::string_view json_key(ComponentKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)].json_key;
}
std::string_view label_of(ComponentKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)].label;
}

std::string_view name_of(Verdict verdict) {
  constexpr std::array<std::string_view, 3> kNames = {"fits", "tight", "no"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Range Instant::total(Meter meter) const {
  Range range;
  for (const Component& component : components)
    if (component.first_seen_by <= meter) add(range, component);
  return range;
}

Range Instant::total_of(ComponentKind kind) const {
  Range range;
  for (const Component& component : components)
    if (component.kind == kind) add(range, component);
  return range;
}

Verdict Estimate::verdict() const {
  Verdict worst = Verdict::fits;
  for (const GpuEstimate& gpu : per_gpu) worst = std::max(worst, gpu.verdict);
  return worst;
}

Bytes Estimate::host_bytes() const {
  Bytes total;
  for (const Component& component : host) total += component.expected;
  return total;
}

}  // namespace gpuwright::fit
