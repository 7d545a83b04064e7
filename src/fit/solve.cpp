#include "fit/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fit/support.h"

namespace gpuwright::fit {
namespace {

constexpr std::int64_t kLongestContext = std::int64_t{1} << 24;  // when the model does not say what it was trained on
constexpr std::int64_t kLargestBatch = 1 << 16;

// llama.cpp's context is that of all sequences, every other engine's belongs to each.
bool context_is_shared(Engine engine) {
  return engine == Engine::llama_cpp;
}

// Of one sequence, where the context is shared.
std::int64_t share_of_context(const model::Model& model, const Job& job) {
  if (job.context_tokens) return divide_up(*job.context_tokens, job.sequences);
  if (job.prompt_tokens) return *job.prompt_tokens + job.new_tokens.value_or(1);
  return model.context_length > 0 ? std::min<std::int64_t>(model.context_length, 4096) : 4096;
}

Job with_context(const Job& job, std::int64_t context) {
  Job changed = job;
  changed.context_tokens = context;
  if (!job.prompt_tokens) return changed;
  const std::int64_t each = context_is_shared(job.engine) ? context / job.sequences : context;
  changed.new_tokens = std::clamp<std::int64_t>(job.new_tokens.value_or(1), 1, std::max<std::int64_t>(each - 1, 1));
  changed.prompt_tokens = std::max<std::int64_t>(each - *changed.new_tokens, 1);
  return changed;
}

Job with_batch(const model::Model& model, const Job& job, std::int64_t batch) {
  Job changed = job;
  changed.sequences = batch;
  if (context_is_shared(job.engine)) changed.context_tokens = share_of_context(model, job) * batch;
  return changed;
}

Job with_value(Quantity quantity, const model::Model& model, const Job& job, std::int64_t value) {
  switch (quantity) {
    case Quantity::context:
    case Quantity::sequence:
      return with_context(job, value);
    case Quantity::batch:
      return with_batch(model, job, value);
    case Quantity::layers:
      break;
  }
  Job changed = job;
  changed.llama.gpu_layers = value;
  return changed;
}

struct Bounds {
  std::int64_t low, high;
};

Result<Bounds> bounds_of(Quantity quantity, const model::Model& model, const Job& job) {
  switch (quantity) {
    case Quantity::context:
    case Quantity::sequence: {
      const std::int64_t trained = model.context_length > 0 ? model.context_length : kLongestContext;
      const std::int64_t sequences = context_is_shared(job.engine) ? job.sequences : 1;
      const std::int64_t least = job.prompt_tokens ? 2 * sequences : 1;  // a prompt of one token and a new one
      return Bounds{least, std::max(least, trained * sequences)};
    }
    case Quantity::batch:
      return Bounds{1, kLargestBatch};
    case Quantity::layers:
      break;
  }
  if (job.engine != Engine::llama_cpp && job.engine != Engine::ollama)
    return fail(ErrorCode::unsupported, fmt::format("{} does not offload single layers", name_of(job.engine)),
                "use --engine llama.cpp");
  return Bounds{0, static_cast<std::int64_t>(model.layers.size()) + 1};
}

// vLLM does not start when its usual share is not free; on each GPU the reserve leaves another share.
Job with_free_share(const Job& job, const Target& target) {
  Job changed = job;
  if (job.engine != Engine::vllm || job.vllm.gpu_memory_utilization || target.total <= job.reserve) return changed;
  const double share = static_cast<double>((target.free - job.reserve).count) / static_cast<double>(target.total.count);
  if (share < 0.92) changed.vllm.gpu_memory_utilization = std::max(std::floor(100 * share) / 100, 0.01);
  return changed;
}

bool good_enough(Verdict verdict, bool strict) {
  return strict ? verdict == Verdict::fits : verdict != Verdict::no;
}

}  // namespace

Result<Solution> largest(Quantity quantity, const model::Model& model, const Job& job,
                         const std::vector<Target>& targets, bool strict) {
  const Bounds bounds = GW_TRY(bounds_of(quantity, model, job));
  const auto attempt = [&](std::int64_t value) -> Result<Solution> {
    Job changed = with_value(quantity, model, job, value);
    Estimate answer = GW_TRY(estimate(model, changed, targets));
    return Solution{value, std::move(answer), std::move(changed)};
  };
  Solution best = GW_TRY(attempt(bounds.low));
  if (!good_enough(best.estimate.verdict(), strict)) {
    best.value = quantity == Quantity::layers ? -1 : 0;
    return best;
  }
  // Memory grows with each of the three quantities, so the first value that does not fit ends the search: double up
  // to it, then halve the gap.
  std::int64_t fits = bounds.low, fails = bounds.high + 1;
  for (std::int64_t step = 1; fails - fits > 1;) {
    const bool doubling = fails == bounds.high + 1;
    const std::int64_t middle = doubling ? std::min(fits + step, bounds.high) : fits + (fails - fits) / 2;
    Solution tried = GW_TRY(attempt(middle));
    if (good_enough(tried.estimate.verdict(), strict)) {
      fits = middle;
      best = std::move(tried);
    } else {
      fails = middle;
    }
    step *= 2;
  }
  return best;
}

Result<std::vector<GpuChoice>> smallest_gpus(const model::Model& model, const Job& job, const catalog::Catalog& catalog,
                                             int count, bool strict, std::size_t limit, const GpuFilter& among) {
  std::vector<const catalog::Accelerator*> candidates;
  for (const catalog::Accelerator& accelerator : catalog.accelerators())
    if (!among || among(accelerator)) candidates.push_back(&accelerator);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto* a, const auto* b) { return a->usable() < b->usable(); });

  std::vector<GpuChoice> choices;
  Bytes surely_too_small;  // a GPU this size failed by so much that overheads cannot make up for it
  for (const catalog::Accelerator* accelerator : candidates) {
    if (choices.size() >= limit) break;
    if (accelerator->usable() <= surely_too_small) continue;
    const Target target = target_from(*accelerator);
    if (!check_hardware(model, job, target)) continue;
    const std::vector<Target> targets(static_cast<std::size_t>(count), target);
    Estimate answer = GW_TRY(estimate(model, with_free_share(job, target), targets));
    if (good_enough(answer.verdict(), strict)) {
      choices.push_back({accelerator, std::move(answer)});
      continue;
    }
    Bytes needed;
    for (const GpuEstimate& gpu : answer.per_gpu)
      needed = std::max(needed, gpu.peak().total_of(ComponentKind::weights).low);
    surely_too_small = std::max(surely_too_small, needed);
  }
  return choices;
}

const catalog::Accelerator* largest_gpu(const model::Model& model, const Job& job, const catalog::Catalog& catalog,
                                        const GpuFilter& among) {
  const catalog::Accelerator* largest = nullptr;
  for (const catalog::Accelerator& accelerator : catalog.accelerators()) {
    if (among && !among(accelerator)) continue;
    if (largest != nullptr && accelerator.usable() <= largest->usable()) continue;
    if (check_hardware(model, job, target_from(accelerator))) largest = &accelerator;
  }
  return largest;
}

}  // namespace gpuwright::fit
