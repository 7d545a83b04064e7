#include "fit/strategy/training_answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "fit/strategy/memory.h"
#include "fit/strategy/words.h"

namespace gpuwright::fit {
namespace {

using strategy::shortfall_of;

struct Change {
  std::string what;
  std::string cost;
  TrainingJob job;
};
using MaybeChange = std::optional<Change>;
using Knob = MaybeChange (*)(const TrainingJob&);

template <class Edit>
Change changed(const TrainingJob& job, std::string what, std::string cost, Edit edit) {
  Change change{std::move(what), std::move(cost), job};
  edit(change.job);
  return change;
}

MaybeChange fused_attention(const TrainingJob& job) {
  if (job.attention != "eager") return std::nullopt;
  return changed(job, "use fused attention: --attention sdpa", "nothing; it is faster",
                 [](TrainingJob& next) { next.attention = "sdpa"; });
}
MaybeChange chunked_loss(const TrainingJob& job) {
  if (job.chunked_cross_entropy) return std::nullopt;
  return changed(job, "compute the loss in chunks: --chunked-loss", "nothing measurable",
                 [](TrainingJob& next) { next.chunked_cross_entropy = true; });
}
MaybeChange fused_kernels(const TrainingJob& job) {
  if (job.fused_kernels) return std::nullopt;
  return changed(job, "norms and SwiGLU that keep less (Liger, unsloth): --fused-kernels", "nothing; it is faster",
                 [](TrainingJob& next) { next.fused_kernels = true; });
}
MaybeChange smaller_micro_batch(const TrainingJob& job) {
  if (job.micro_batch == 1) return std::nullopt;
  return changed(job,
                 fmt::format("the same batch in single sequences: --batch 1 --accumulate {}",
                             job.micro_batch * job.gradient_accumulation),
                 "smaller matrix products", [](TrainingJob& next) {
                   next.gradient_accumulation *= next.micro_batch;
                   next.micro_batch = 1;
                 });
}
MaybeChange eight_bit_optimizer(const TrainingJob& job) {
  if (job.optimizer != Optimizer::adamw && job.optimizer != Optimizer::adamw_fused &&
      job.optimizer != Optimizer::adamw_loop)
    return std::nullopt;
  return changed(job, "optimizer states in 8 bit: --optimizer adamw-8bit", "no loss was measured in arXiv 2110.02861",
                 [](TrainingJob& next) { next.optimizer = Optimizer::adamw_8bit; });
}
MaybeChange checkpointing(const TrainingJob& job) {
  if (job.checkpointing == Checkpointing::full || job.checkpointing == Checkpointing::offloaded) return std::nullopt;
  return changed(job, "keep only the layers' inputs: --checkpointing full", "forward runs a second time",
                 [](TrainingJob& next) { next.checkpointing = Checkpointing::full; });
}
MaybeChange shard(const TrainingJob& job) {
  if (job.data_parallel < 2 || job.sharding.kind == Sharding::zero3 || job.sharding.kind == Sharding::fsdp)
    return std::nullopt;
  if (job.engine == TrainingEngine::deepspeed)
    return changed(job, "share weights, gradients and states: --zero 3", "weights are gathered for each micro-batch",
                   [](TrainingJob& next) { next.sharding.kind = Sharding::zero3; });
  return changed(job, "share weights, gradients and states: --train-engine fsdp --fsdp full",
                 "weights are gathered for each micro-batch", [](TrainingJob& next) {
                   if (next.engine == TrainingEngine::transformers) next.engine = TrainingEngine::fsdp;
                   next.sharding.kind = Sharding::fsdp;
                 });
}
MaybeChange offload(const TrainingJob& job) {
  if (job.sharding.offload_optimizer || job.method != TrainingMethod::full) return std::nullopt;
  return changed(job, "optimizer on the CPU: --train-engine deepspeed --zero 2 --offload optimizer",
                 "gradients and weights cross PCIe in each step", [](TrainingJob& next) {
                   next.engine = TrainingEngine::deepspeed;
                   next.precision = Precision::mixed_deepspeed;
                   if (next.sharding.kind != Sharding::zero3) next.sharding.kind = Sharding::zero2;
                   next.sharding.offload_optimizer = true;
                 });
}
MaybeChange pure_bf16(const TrainingJob& job) {
  if (job.method != TrainingMethod::full || job.precision == Precision::pure_bf16) return std::nullopt;
  return changed(job, "everything in bf16: --precision pure-bf16", "small updates are lost in rounding",
                 [](TrainingJob& next) { next.precision = Precision::pure_bf16; });
}
MaybeChange half_sequence(const TrainingJob& job) {
  if (job.sequence < 512) return std::nullopt;
  return changed(job, fmt::format("shorter samples: --sequence {}", job.sequence / 2),
                 "longer samples are cut or split", [](TrainingJob& next) { next.sequence /= 2; });
}
MaybeChange lora(const TrainingJob& job) {
  if (job.method != TrainingMethod::full) return std::nullopt;
  return changed(job, "train adapters instead of all weights: --train lora", "less can be learnt (arXiv 2405.09673)",
                 [](TrainingJob& next) {
                   next.method = TrainingMethod::lora;
                   next.precision = usual_precision(next.engine, next.method);
                 });
}
MaybeChange qlora(const TrainingJob& job) {
  if (job.method == TrainingMethod::qlora || job.tensor_parallel > 1 || job.pipeline_parallel > 1) return std::nullopt;
  return changed(job, "adapters over a 4-bit base: --train qlora", "unpacking takes time, about 39 % of LoRA's",
                 [](TrainingJob& next) {
                   next.method = TrainingMethod::qlora;
                   next.precision = usual_precision(next.engine, next.method);
                 });
}

constexpr Knob kKnobs[] = {fused_attention,     chunked_loss,  fused_kernels, smaller_micro_batch,
                           eight_bit_optimizer, checkpointing, shard,         offload,
                           pure_bf16,           half_sequence, lora,          qlora};

std::string cost_of(const Change& change, const SlowdownModel& slowdown, double now) {
  const double ratio = slowdown.factor(change.job) / now;
  if (ratio > 1.005) return fmt::format("{}; about {:.0f} % more time a token", change.cost, (ratio - 1) * 100);
  if (ratio < 0.995) return fmt::format("{}; about {:.0f} % less time a token", change.cost, (1 - ratio) * 100);
  return change.cost;
}

std::optional<Advice> combination(const model::Model& model, const TrainingJob& job, const std::vector<Target>& targets,
                                  const Machine& machine, Bytes shortfall) {
  StrategyRequest request;
  request.job = job;
  request.global_batch = job.micro_batch * job.gradient_accumulation * job.data_parallel;
  request.strict = true;
  const auto found = find_strategy(model, request, targets, machine);
  if (!found || !found->best) return std::nullopt;
  return Advice{fmt::format("together, as --strategy auto finds it: {}", describe(found->best->job)),
                fmt::format("{:.2f} times the time of an undisturbed step", found->best->slowdown.factor),
                shortfall - shortfall_of(found->best->estimate), Verdict::fits};
}

}  // namespace

Result<std::vector<GpuChoice>> smallest_training_gpus(const model::Model& model, const TrainingJob& job,
                                                      const catalog::Catalog& catalog, int count, bool strict,
                                                      std::size_t limit, const GpuFilter& among) {
  std::vector<const catalog::Accelerator*> candidates;
  for (const catalog::Accelerator& accelerator : catalog.accelerators())
    if (!among || among(accelerator)) candidates.push_back(&accelerator);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto* a, const auto* b) { return a->usable() < b->usable(); });
  std::vector<GpuChoice> choices;
  for (const catalog::Accelerator* accelerator : candidates) {
    if (choices.size() >= limit) break;
    const std::vector<Target> targets(static_cast<std::size_t>(count), target_from(*accelerator));
    if (strategy::Memory(model, targets).ask(job).verdict > (strict ? Verdict::fits : Verdict::tight)) continue;
    choices.push_back({accelerator, GW_TRY(estimate_training(model, job, targets))});
  }
  return choices;
}

std::vector<Advice> advise_training(const model::Model& model, const TrainingJob& job,
                                    const std::vector<Target>& targets, const Machine& machine) {
  strategy::Memory memory(model, targets);
  const auto now = memory.full(job);
  const auto slowdown = SlowdownModel::create(model, job.method, job, machine);
  if (!now || !slowdown) return {};
  const Bytes shortfall = shortfall_of(*now);
  const double factor = slowdown->factor(job);
  std::vector<Advice> advice;
  bool solved = false;
  for (const Knob knob : kKnobs) {
    const MaybeChange change = knob(job);
    if (!change) continue;
    const auto after = memory.full(change->job);
    if (!after || shortfall_of(*after) >= shortfall) continue;
    const Bytes saved = shortfall - shortfall_of(*after);
    constexpr std::int64_t kWorthSaying = 50;  // a fiftieth of what is missing
    if (after->verdict() == Verdict::no && saved.count < shortfall.count / kWorthSaying) continue;
    const bool same_method = change->job.method == job.method;
    solved = solved || (same_method && after->verdict() == Verdict::fits);
    advice.push_back({change->what, cost_of(*change, *slowdown, factor), saved, after->verdict()});
  }
  if (!solved)
    if (auto together = combination(model, job, targets, machine, shortfall)) advice.push_back(std::move(*together));
  return advice;
}

}  // namespace gpuwright::fit
