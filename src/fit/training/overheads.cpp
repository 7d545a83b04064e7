#include "fit/training/overheads.h"

#include <fmt/format.h>

#include <cmath>

#include "fit/engines/torch_common.h"
#include "fit/training/constants.h"

namespace gpuwright::fit::training {
namespace {

std::int64_t ranks_of(const TrainingJob& job) {
  return std::int64_t{job.data_parallel} * job.tensor_parallel * job.context_parallel;
}

Component component(ComponentKind kind, Meter meter, const Constant& bytes, std::string formula) {
  return {kind,
          meter,
          {static_cast<std::int64_t>(bytes.low)},
          {static_cast<std::int64_t>(bytes.expected)},
          {static_cast<std::int64_t>(bytes.high)},
          std::move(formula),
          bytes.source};
}

}  // namespace

Result<std::vector<Component>> outside_components(const TrainingJob& job, const Target& target) {
  std::vector<Component> parts;
  parts.push_back(cublas_workspace(target.architecture));
  parts.push_back(component(ComponentKind::runtime, Meter::device,
                            GW_TRY(constant("cuda_context_bytes", name_of(job.engine), target.architecture)),
                            "CUDA context, kernels and libraries of one process"));
  if (ranks_of(job) > 1)
    parts.push_back(component(ComponentKind::communication, Meter::device,
                              GW_TRY(constant("nccl_bytes", {}, target.architecture)),
                              fmt::format("NCCL communicators of {} ranks", ranks_of(job))));
  return parts;
}

Result<Component> allocator_slack(const TrainingJob& job, const Instant& instant, double tokens) {
  const Constant share = GW_TRY(constant("allocator_slack_share", name_of(job.engine)));
  const Range allocated = instant.total(Meter::allocated);
  double low = share.low * static_cast<double>(allocated.low.count),
         expected = share.expected * static_cast<double>(allocated.expected.count),
         high = share.high * static_cast<double>(allocated.expected.count);
  std::string formula = fmt::format("{:.2f} x what is allocated", share.expected);
  std::string source = share.source;
  if (job.sharding.kind == Sharding::zero3) {
    const Constant more = GW_TRY(constant("zero3_slack_share"));
    const auto all = static_cast<double>(allocated.expected.count);
    expected += more.expected * all;
    high += more.high * all;
    source += "; " + more.source;
  }
  if (job.varying_lengths) {
    const bool recomputes = job.checkpointing != Checkpointing::none;
    const Constant lengths = GW_TRY(constant(
        recomputes ? "varying_lengths_bytes_per_token" : "varying_lengths_share_of_logits", name_of(job.engine)));
    const double logits = static_cast<double>(instant.total_of(ComponentKind::logits).expected.count);
    const double unit = recomputes ? tokens : logits, more = lengths.expected * unit;
    // Two causes that do not know each other: their doubts add as squares.
    low = expected + more - std::hypot(expected - low, more - lengths.low * unit);
    high = expected + more + std::hypot(high - expected, lengths.high * unit - more);
    expected += more;
    formula += recomputes
                   ? fmt::format(" + {:.2g} B x {:.0f} tokens of samples whose lengths vary", lengths.expected, tokens)
                   : fmt::format(" + {:.2f} x logits, as lengths vary under the cap", lengths.expected);
    source += "; " + lengths.source;
  }
  return Component{ComponentKind::allocator,
                   Meter::reserved,
                   {static_cast<std::int64_t>(low)},
                   {static_cast<std::int64_t>(expected)},
                   {static_cast<std::int64_t>(high)},
                   std::move(formula),
                   std::move(source)};
}

}  // namespace gpuwright::fit::training
