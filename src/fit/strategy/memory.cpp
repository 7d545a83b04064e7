#include "fit/strategy/memory.h"

#include <algorithm>

#include "fit/strategy/strategy.h"
#include "model/quantize.h"

namespace gpuwright::fit {

Result<model::Model> model_for(const model::Model& model, TrainingMethod method) {
  const bool plain = std::all_of(model.tensors.begin(), model.tensors.end(), [](const model::Tensor& tensor) {
    return tensor.dtype == model::Dtype::f32 || tensor.dtype == model::Dtype::f16 || tensor.dtype == model::Dtype::bf16;
  });
  if (method != TrainingMethod::qlora || !plain) return model;
  return model::with_weight_format(model, "bnb-nf4-dq");
}

namespace strategy {
namespace {

std::int64_t gpus_wanted(const TrainingJob& job) {
  return std::int64_t{job.data_parallel} * job.tensor_parallel * job.pipeline_parallel * job.context_parallel;
}

}  // namespace

Memory::Memory(const model::Model& model, const std::vector<Target>& targets) : model_(model), targets_(targets) {
  const auto alike = [&](const Target& target) {
    const Target& first = targets.front();
    return target.total == first.total && target.free == first.free && target.architecture == first.architecture;
  };
  if (!targets.empty() && std::all_of(targets.begin(), targets.end(), alike)) one_ = {targets.front()};
}

Result<const model::Model*> Memory::model_for_method(TrainingMethod method) {
  if (method != TrainingMethod::qlora) return &model_;
  if (!quantised_) quantised_ = model_for(model_, method);
  if (!*quantised_) return tl::unexpected(quantised_->error());
  return &**quantised_;
}

Memory::Answer Memory::ask(const TrainingJob& job) {
  const auto model = model_for_method(job.method);
  if (!model) return {};
  Answer answer{Verdict::fits, Bytes{std::numeric_limits<std::int64_t>::min()}, true};
  const int stages = one_.empty() ? 1 : job.pipeline_parallel;
  for (int stage = 0; stage < stages; ++stage) {
    TrainingJob asked = job;
    if (!one_.empty()) asked.pipeline_stage = stage;
    ++estimates_;
    const auto estimate = estimate_training(**model, asked, one_.empty() ? targets_ : one_);
    if (!estimate) return {};
    answer.verdict = std::max(answer.verdict, estimate->verdict());
    answer.shortfall = std::max(answer.shortfall, shortfall_of(*estimate));
    if (answer.verdict == Verdict::no) break;
  }
  return answer;
}

Result<Estimate> Memory::full(const TrainingJob& job) {
  if (one_.empty() || job.pipeline_parallel > 1 || gpus_wanted(job) != static_cast<std::int64_t>(targets_.size()))
    return exact(job);
  ++estimates_;
  Estimate answer = GW_TRY(estimate_training(*GW_TRY(model_for_method(job.method)), job, one_));
  const GpuEstimate first = answer.per_gpu.front();
  const std::vector<Component> host = answer.host;
  for (std::size_t i = 1; i < targets_.size(); ++i) {
    answer.per_gpu.push_back(first);
    answer.per_gpu.back().rank = static_cast<int>(i);
    answer.host.insert(answer.host.end(), host.begin(), host.end());
  }
  return answer;
}

Result<Estimate> Memory::exact(const TrainingJob& job) {
  estimates_ += targets_.size();
  const model::Model* model = GW_TRY(model_for_method(job.method));
  return estimate_training(*model, job, targets_);
}

Bytes peak_of(const Estimate& estimate) {
  Bytes peak;
  for (const GpuEstimate& gpu : estimate.per_gpu) peak = std::max(peak, gpu.peak().total().expected);
  return peak;
}

Bytes shortfall_of(const Estimate& estimate) {
  Bytes worst{std::numeric_limits<std::int64_t>::min()};
  for (const GpuEstimate& gpu : estimate.per_gpu) worst = std::max(worst, gpu.peak().total().expected - gpu.usable);
  return worst;
}

}  // namespace strategy
}  // namespace gpuwright::fit
