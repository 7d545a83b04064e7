#include "fit/together.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

// What the tenants take of the card once all have started.
Bytes claimed(const std::vector<Tenant>& tenants, std::size_t rank) {
  Bytes sum;
  for (const Tenant& tenant : tenants) {
    if (rank >= tenant.estimate.per_gpu.size()) continue;
    const GpuEstimate& gpu = tenant.estimate.per_gpu[rank];
    sum += tenant.claims_budget ? std::max(gpu.usable, gpu.peak().total().expected) : gpu.peak().total().expected;
  }
  return sum;
}

// The share of the card that holds the tenant's peak with its uncertainty, rounded up to whole percents.
int percent_for(const Tenant& tenant, const std::vector<Target>& targets) {
  double share = 0;
  for (std::size_t rank = 0; rank < targets.size() && rank < tenant.estimate.per_gpu.size(); ++rank)
    share = std::max(share, static_cast<double>(tenant.estimate.per_gpu[rank].peak().total().high.count) /
                                static_cast<double>(std::max<std::int64_t>(targets[rank].total.count, 1)));
  return static_cast<int>(std::ceil(share * 100));
}

// Budgets that do not fit beside each other, though the needs might: refuse, and say what to set.
void settle_budgets(Estimate& answer, const std::vector<Tenant>& tenants, const std::vector<Target>& targets) {
  bool too_much = false;
  Bytes excess;
  const Verdict needs = answer.verdict();
  for (std::size_t rank = 0; rank < answer.per_gpu.size(); ++rank) {
    const Bytes over = claimed(tenants, rank) - answer.per_gpu[rank].usable;
    if (over <= Bytes{}) continue;
    answer.per_gpu[rank].verdict = Verdict::no;
    excess = std::max(excess, over);
    too_much = true;
  }
  if (!too_much || needs == Verdict::no) return;
  std::string shares;
  for (const Tenant& tenant : tenants)
    if (tenant.claims_budget)
      shares +=
          fmt::format("{}{:.2f} for {}", shares.empty() ? "" : ", ", percent_for(tenant, targets) / 100.0, tenant.name);
  answer.advice.push_back({fmt::format("give each engine its share of the card: --gpu-memory-utilization "
                                       "(SGLang: --mem-fraction-static) {}",
                                       shares),
                           "fewer requests at once; nothing is left for a larger cache", excess, needs});
  answer.notes.push_back("The engines claim more of the card than it has: the one that starts last will fail.");
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
  settle_budgets(answer, tenants, targets);
  return answer;
}

}  // namespace gpuwright::fit
