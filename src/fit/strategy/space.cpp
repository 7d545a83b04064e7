#include "fit/strategy/space.h"

#include <algorithm>

namespace gpuwright::fit {
namespace {

Layout layout_of(const TrainingJob& job) {
  return {job.engine, job.sharding, job.tensor_parallel, job.pipeline_parallel};
}

Layout sharded(TrainingEngine engine, Sharding kind, bool offload_optimizer = false, bool offload_parameters = false) {
  Layout layout{engine, {}, 1, 1};
  layout.sharding.kind = kind;
  layout.sharding.offload_optimizer = offload_optimizer;
  layout.sharding.offload_parameters = offload_parameters;
  return layout;
}

bool shards_with_fsdp(TrainingEngine engine) {
  return engine == TrainingEngine::fsdp || engine == TrainingEngine::torchtune ||
         engine == TrainingEngine::torchtitan || engine == TrainingEngine::litgpt;
}

void add_zero(std::vector<Layout>& layouts, int gpus) {
  if (gpus > 1)
    for (const Sharding kind : {Sharding::zero1, Sharding::zero2, Sharding::zero3})
      layouts.push_back(sharded(TrainingEngine::deepspeed, kind));
  layouts.push_back(sharded(TrainingEngine::deepspeed, Sharding::zero2, true));
  layouts.push_back(sharded(TrainingEngine::deepspeed, Sharding::zero3, true));
  layouts.push_back(sharded(TrainingEngine::deepspeed, Sharding::zero3, true, true));
}

void add_fsdp(std::vector<Layout>& layouts, TrainingEngine engine, int gpus) {
  if (gpus == 1) return;
  layouts.push_back(sharded(engine, Sharding::fsdp_grad_only));
  layouts.push_back(sharded(engine, Sharding::fsdp));
  layouts.push_back(sharded(engine, Sharding::fsdp, true, true));
}

void add_megatron(std::vector<Layout>& layouts, int gpus) {
  for (int tensor = 1; tensor <= gpus; tensor *= 2)
    for (int pipeline = 1; tensor * pipeline <= gpus; pipeline *= 2) {
      if (gpus % (tensor * pipeline) != 0 || tensor * pipeline == 1) continue;
      Layout layout{TrainingEngine::megatron, {}, tensor, pipeline};
      if (gpus > tensor * pipeline) layout.sharding.kind = Sharding::zero1;  // its distributed optimizer
      layouts.push_back(layout);
    }
}

std::vector<Layout> layouts_around(const TrainingJob& job, const Freedom& freedom, int gpus) {
  if (!freedom.sharding) return {layout_of(job)};
  std::vector<Layout> layouts;
  Layout plain = layout_of(job);
  if (freedom.sharding) plain.sharding = {};
  layouts.push_back(plain);
  if (freedom.engine || job.engine == TrainingEngine::deepspeed) add_zero(layouts, gpus);
  if (freedom.engine) add_fsdp(layouts, TrainingEngine::fsdp, gpus);
  if (!freedom.engine && shards_with_fsdp(job.engine)) add_fsdp(layouts, job.engine, gpus);
  if (freedom.parallelism && (freedom.engine || job.engine == TrainingEngine::megatron)) add_megatron(layouts, gpus);
  if (!freedom.parallelism)
    for (Layout& layout : layouts)
      layout.tensor_parallel = job.tensor_parallel, layout.pipeline_parallel = job.pipeline_parallel;
  return layouts;
}

std::vector<std::int64_t> divisors(std::int64_t number) {
  constexpr std::int64_t kLargest = 64;
  std::vector<std::int64_t> found;
  for (std::int64_t i = 1; i <= std::min(number, kLargest); ++i)
    if (number % i == 0) found.push_back(i);
  return found;
}

Precision mixed_precision_of(TrainingEngine engine) {
  switch (engine) {
    case TrainingEngine::deepspeed:
      return Precision::mixed_deepspeed;
    case TrainingEngine::megatron:
      return Precision::mixed_megatron;
    default:
      return Precision::amp_bf16;
  }
}

}  // namespace

std::size_t Space::size() const {
  return methods.size() * numerics.size() * optimizers.size() * checkpointing.size() * chunked_loss.size() *
         layouts.size() * micro_batches.size();
}

Space space_around(const TrainingJob& job, const Freedom& freedom, std::int64_t global_batch, int gpus) {
  Space space;
  space.methods = {job.method};
  space.methods.insert(space.methods.end(), freedom.also.begin(), freedom.also.end());
  space.numerics = {Numerics::mixed};
  if (freedom.numerics) space.numerics.push_back(Numerics::pure);
  space.optimizers = {job.optimizer};
  if (freedom.optimizer && job.optimizer != Optimizer::adamw_8bit) space.optimizers.push_back(Optimizer::adamw_8bit);
  space.checkpointing = {job.checkpointing};
  if (freedom.checkpointing)
    space.checkpointing = {Checkpointing::none, Checkpointing::selective, Checkpointing::full,
                           Checkpointing::offloaded};
  space.chunked_loss = {job.chunked_cross_entropy};
  if (freedom.loss) space.chunked_loss = {false, true};
  space.layouts = layouts_around(job, freedom, gpus);
  space.micro_batches = {job.micro_batch};
  if (freedom.micro_batch) space.micro_batches = divisors(global_batch);
  return space;
}

std::optional<TrainingJob> job_at(const TrainingJob& base, TrainingMethod method, Numerics numerics,
                                  Optimizer optimizer, Checkpointing checkpointing, bool chunked_loss,
                                  const Layout& layout, std::int64_t micro_batch, std::int64_t global_batch, int gpus,
                                  bool keep_precision) {
  const int split = layout.tensor_parallel * layout.pipeline_parallel * base.context_parallel;
  if (split < 1 || gpus % split != 0) return std::nullopt;
  TrainingJob job = base;
  job.data_parallel = gpus / split;
  if (global_batch % (job.data_parallel * micro_batch) != 0) return std::nullopt;
  const bool frozen = method != TrainingMethod::full;
  if (frozen && numerics == Numerics::pure) return std::nullopt;   // a frozen base is 16-bit anyway
  if (frozen && optimizer != base.optimizer) return std::nullopt;  // adapters' states are not what is short
  // Megatron-LM's optimizers step fp32 copies (megatron/core/optimizer): neither is to be had there.
  if (layout.engine == TrainingEngine::megatron && !frozen &&
      (numerics == Numerics::pure || (optimizer == Optimizer::adamw_8bit && base.optimizer != optimizer)))
    return std::nullopt;
  if (method == TrainingMethod::qlora && (layout.tensor_parallel > 1 || layout.pipeline_parallel > 1))
    return std::nullopt;  // bitsandbytes' matrices cannot be split
  job.method = method;
  job.engine = layout.engine;
  if (layout.engine != base.engine) job.engine_version.clear();
  if (!keep_precision && frozen)
    job.precision = usual_precision(layout.engine, method);
  else if (!keep_precision)
    job.precision = numerics == Numerics::pure ? Precision::pure_bf16 : mixed_precision_of(layout.engine);
  job.optimizer = optimizer;
  job.checkpointing = checkpointing;
  job.chunked_cross_entropy = chunked_loss;
  job.sharding = layout.sharding;
  job.tensor_parallel = layout.tensor_parallel;
  job.pipeline_parallel = layout.pipeline_parallel;
  job.sequence_parallel = base.sequence_parallel || layout.tensor_parallel > 1;
  job.micro_batch = micro_batch;
  job.gradient_accumulation = global_batch / (job.data_parallel * micro_batch);
  return job;
}

}  // namespace gpuwright::fit
