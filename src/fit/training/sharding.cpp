#include "fit/training/sharding.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuwright::fit::training {
namespace {

constexpr double kZeroSubGroup = 1e9;  // sub_group_size of ZeRO-3, elements

// Megatron's distributed optimizer is stage 1 by its shares, but works inside its one gradient buffer.
bool is_zero_1_or_2(const TrainingJob& job) {
  if (job.engine == TrainingEngine::megatron) return false;
  return job.sharding.kind == Sharding::zero1 || job.sharding.kind == Sharding::zero2;
}

BufferBytes scaled(const Constant& elements, double bytes_per_element, std::string formula) {
  return {elements.low * bytes_per_element, elements.expected * bytes_per_element, elements.high * bytes_per_element,
          std::move(formula), elements.source};
}

Result<Constant> bucket(const TrainingJob& job) {
  if (const auto told = job.sharding.bucket_elements) {
    const double elements = static_cast<double>(*told);
    return Constant{elements, elements, elements, "the job's own bucket size"};
  }
  return constant("zero_bucket_elements", name_of(job.engine));
}

// DeepSpeed's documentation counts 4.5 x (reduce + all-gather bucket) with overlap_comm; what rows show is nearer to
// half of that, as the all-gather bucket is not alive in backward.
Result<BufferBytes> zero_buckets(const TrainingJob& job) {
  const Constant elements = GW_TRY(bucket(job));
  const double buckets = job.sharding.overlap_comm ? 4.5 : 1;
  BufferBytes bytes =
      scaled(elements, 2 * buckets,
             fmt::format("{:.1f} x {:.0f} elements x 2 B of reduce buckets", buckets, elements.expected));
  if (job.sharding.overlap_comm) bytes.low = elements.low * 2 * 2;
  return bytes;
}

Result<BufferBytes> zero3_live(const TrainingJob& job, const Units& units) {
  const Constant live = GW_TRY(constant("zero3_live_elements"));
  const double per_parameter = units.all_parameters > 0 ? units.all / units.all_parameters : 2;
  const auto capped = [&](double elements) { return std::min(elements, units.all_parameters) * per_parameter; };
  BufferBytes bytes{std::max(capped(live.low), units.largest_layer),
                    std::max(capped(live.expected), units.largest_layer) + units.root / 2,
                    std::max(capped(live.high), units.largest_layer) + units.root,
                    {},
                    live.source};
  if (job.sharding.offload_parameters) bytes.expected = std::min(bytes.expected, bytes.high);
  bytes.formula = fmt::format("min({:.0e} live parameters, model) + half of the {:.0f} B of embeddings and head",
                              live.expected, units.root);
  return bytes;
}

Result<BufferBytes> fsdp_units(const TrainingJob& job, const Units& units, bool backward) {
  double gathered = job.sharding.limit_all_gathers ? 2 : 4, fewest_gathered = 1, most_gathered = gathered + 0.5;
  if (job.sharding.offload_parameters && job.engine == TrainingEngine::fsdp) {
    // Copies from the host run ahead of the layers, which limit_all_gathers does not hold back.
    const Constant ahead = GW_TRY(constant("fsdp_offload_gathered_layers"));
    gathered = ahead.expected;
    fewest_gathered = ahead.low;
    most_gathered = ahead.high;
  }
  const double gradient = backward ? units.largest_layer_gradient : 0;
  // FSDP of torch before 2.2 never reshards a unit whose parameters are all frozen: in backward the whole model is
  // gathered (fixed by _register_post_backward_reshard_only_hook).
  if (job.engine == TrainingEngine::litgpt && job.method != TrainingMethod::full)
    return BufferBytes{units.all * 0.9, units.all, units.all * 1.12, "the whole frozen model, gathered and kept",
                       "litgpt @8641822 with torch 2.1; pytorch FSDP, frozen parameters are not resharded"};
  // FSDP2 recipes wrap embeddings and head on their own, so that only one of them is gathered at a time.
  const double root = job.engine == TrainingEngine::torchtune ? units.root / 2 : units.root;
  const double expected = gathered * units.largest_layer + root + gradient;
  // When a layer's backward ends, all its weights and all its gradients are there at once.
  const double sure_gradient = job.method == TrainingMethod::full ? gradient : 0;
  return BufferBytes{fewest_gathered * units.largest_layer + 0.85 * root + sure_gradient, expected,
                     most_gathered * units.largest_layer + root + 1.2 * gradient,
                     fmt::format("{:.0f} gathered layers x {:.0f} B + {:.0f} B of embeddings and head{}", gathered,
                                 units.largest_layer, root, backward && gradient > 0 ? " + one layer's gradient" : ""),
                     "torch.distributed.fsdp: the unit in use and the one prefetched"};
}

}  // namespace

ShardShares shard_shares(const TrainingJob& job) {
  const double ranks = static_cast<double>(job.data_parallel) * job.context_parallel;
  switch (job.sharding.kind) {
    case Sharding::none:
      return {};
    case Sharding::zero1:
      return {1, 1, ranks};
    case Sharding::zero2:
      return {1, ranks, ranks};
    case Sharding::zero3:
    case Sharding::fsdp:
      return {ranks, ranks, ranks};
    case Sharding::fsdp_grad_only:
      return {1, ranks, ranks};
  }
  return {};
}

Result<BufferBytes> running_buffers(const TrainingJob& job, const Units& units, bool backward) {
  switch (job.sharding.kind) {
    case Sharding::none: {
      if (job.data_parallel < 2 || !backward) return BufferBytes{};
      // DDP's buckets are the gradients themselves where gradient_as_bucket_view is set, else a second copy.
      const double copy = units.trained_parameters * 2;
      return BufferBytes{0, copy, 2 * copy, "DDP buckets: a copy of the gradients", "torch DistributedDataParallel"};
    }
    case Sharding::zero1:
    case Sharding::zero2:
      if (!backward || !is_zero_1_or_2(job)) return BufferBytes{};
      return zero_buckets(job);
    case Sharding::zero3: {
      BufferBytes live = GW_TRY(zero3_live(job, units));
      if (!backward) return live;
      live.expected += units.largest_layer_gradient;
      live.high += 2 * units.largest_layer_gradient;
      return live;
    }
    case Sharding::fsdp:
      return fsdp_units(job, units, backward);
    case Sharding::fsdp_grad_only:
      return BufferBytes{0, units.largest_layer_gradient, 2 * units.largest_layer_gradient,
                         "one layer's unreduced gradient", "torch.distributed.fsdp SHARD_GRAD_OP"};
  }
  return BufferBytes{};
}

Result<BufferBytes> step_buffers(const TrainingJob& job, const Units& units) {
  const double share = units.trained_parameters / shard_shares(job).states;
  const bool zero = is_zero_1_or_2(job) || job.sharding.kind == Sharding::zero3;
  if (!zero || job.sharding.offload_optimizer) return BufferBytes{};
  const double elements = job.sharding.kind == Sharding::zero3 ? std::min(share, kZeroSubGroup) : share;
  return BufferBytes{0, 4 * elements, 4 * elements,
                     fmt::format("fp32 gradients of {:.0f} parameters in step", elements),
                     "deepspeed runtime/zero: single_partition_of_fp32_groups.grad"};
}

Result<BufferBytes> gather_buffers(const TrainingJob& job, const Units& units) {
  if (is_zero_1_or_2(job)) {
    const Constant elements = GW_TRY(bucket(job));
    return scaled(elements, 2, fmt::format("all-gather bucket of {:.0f} elements x 2 B", elements.expected));
  }
  return running_buffers(job, units, false);
}

}  // namespace gpuwright::fit::training
