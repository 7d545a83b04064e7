#include "fit/together.h"

#include <fmt/format.h>

namespace gpuwright::fit {
namespace {

GpuEstimate on_one_gpu(const std::vector<Tenant>& tenants, const Target& target, std::size_t rank, Bytes reserve) {
  GpuEstimate gpu;
  gpu.gpu = target.name;
  gpu.rank = static_cast<int>(rank);
  gpu.usable = target.free - reserve;
  gpu.usable_formula = fmt::format("{} free - {} reserved", to_string(target.free), to_string(reserve));
  Instant all{"all at their peak", {}, "load one model less, or shrink the largest"};
  for (const Tenant& tenant : tenants) {
    if (rank >= tenant.estimate.per_gpu.size()) continue;
    for (Component component : tenant.estimate.per_gpu[rank].peak().components) {
      component.formula = fmt::format("{}: {}", tenant.name, component.formula);
      all.components.push_back(std::move(component));
    }
  }
  const Range total = all.total();
  gpu.instants.push_back(std::move(all));
  gpu.verdict = total.expected > gpu.usable ? Verdict::no : total.high > gpu.usable ? Verdict::tight : Verdict::fits;
  return gpu;
}

}  // namespace

Estimate together(const std::vector<Tenant>& tenants, const std::vector<Target>& targets, Bytes reserve) {
  Estimate answer;
  for (std::size_t rank = 0; rank < targets.size(); ++rank)
    answer.per_gpu.push_back(on_one_gpu(tenants, targets[rank], rank, reserve));
  for (const Tenant& tenant : tenants) {
    answer.host.insert(answer.host.end(), tenant.estimate.host.begin(), tenant.estimate.host.end());
    for (const std::string& note : tenant.estimate.notes)
      answer.notes.push_back(fmt::format("{}: {}", tenant.name, note));
  }
  return answer;
}

}  // namespace gpuwright::fit
