// Training jobs and plans as JSON, inside schema gpuwright.fit/1.
#include "cli/fit_train.h"
#include "fit/strategy/words.h"

namespace gpuwright::cli {
namespace {

Json lora_json(const fit::TrainingJob& job) {
  if (job.method == fit::TrainingMethod::full) return {};
  Json targets = Json::array();
  for (const std::string& name : job.lora.targets) targets.push(name);
  Json json;
  json.set("rank", job.lora.rank).set("targets", std::move(targets));
  json.set("adapter_type", model::traits(job.lora.adapter_dtype).name);
  return json.set("trainable_embeddings", job.lora.trainable_embeddings).set("dropout", job.lora.dropout);
}

Json sharding_json(const fit::ShardingOptions& sharding) {
  Json json;
  json.set("kind", fit::name_of(sharding.kind)).set("offload_optimizer", sharding.offload_optimizer);
  json.set("offload_parameters", sharding.offload_parameters).set("overlap_comm", sharding.overlap_comm);
  json.set("bucket_elements", sharding.bucket_elements).set("limit_all_gathers", sharding.limit_all_gathers);
  return json.set("partitioned_at_load", sharding.partitioned_at_load);
}

Json slowdown_json(const fit::Slowdown& slowdown) {
  Json parts = Json::array(), json;
  for (const fit::Slowdown::Part& part : slowdown.parts) {
    Json row;
    parts.push(row.set("name", part.name).set("share", part.share).set("source", part.source));
  }
  return json.set("factor", slowdown.factor).set("parts", std::move(parts));
}

Json plan_json(const fit::Plan& plan) {
  Json json;
  json.set("job", training_job_json(plan.job)).set("summary", fit::describe(plan.job));
  std::int64_t expected = 0, high = 0;
  for (const fit::GpuEstimate& gpu : plan.estimate.per_gpu) {
    expected = std::max(expected, gpu.peak().total().expected.count);
    high = std::max(high, gpu.peak().total().high.count);
  }
  json.set("expected_bytes", expected).set("high_bytes", high);
  json.set("verdict", fit::name_of(plan.estimate.verdict()));
  return json.set("slow_down", slowdown_json(plan.slowdown));
}

}  // namespace

Json training_job_json(const fit::TrainingJob& job) {
  Json json;
  json.set("task", "training").set("method", fit::name_of(job.method)).set("engine", fit::name_of(job.engine));
  json.set("engine_version", job.engine_version.empty() ? Json() : Json(job.engine_version));
  json.set("micro_batch", job.micro_batch).set("gradient_accumulation", job.gradient_accumulation);
  json.set("global_batch", job.micro_batch * job.gradient_accumulation * job.data_parallel);
  json.set("sequence_tokens", job.sequence).set("varying_lengths", job.varying_lengths);
  json.set("precision", fit::name_of(job.precision)).set("optimizer", fit::name_of(job.optimizer));
  json.set("optimizer_in_backward", job.optimizer_in_backward);
  json.set("checkpointing", fit::name_of(job.checkpointing)).set("activation_offload", job.activation_offload);
  json.set("attention", job.attention).set("fused_kernels", job.fused_kernels).set("compiled", job.compiled);
  json.set("float8_linears", job.float8_linears).set("chunked_cross_entropy", job.chunked_cross_entropy);
  json.set("cross_entropy_chunks", job.cross_entropy_chunks).set("lora", lora_json(job));
  json.set("sharding", sharding_json(job.sharding)).set("data_parallel", job.data_parallel);
  json.set("tensor_parallel", job.tensor_parallel).set("pipeline_parallel", job.pipeline_parallel);
  json.set("context_parallel", job.context_parallel).set("sequence_parallel", job.sequence_parallel);
  json.set("interleaved_pipeline", job.interleaved_pipeline).set("gpus_per_node", job.gpus_per_node);
  return json.set("reserve_bytes", job.reserve.count);
}

Json strategy_json(const fit::Strategy& strategy, const fit::StrategyRequest& request) {
  Json json;
  json.set("global_batch", request.global_batch).set("plans", static_cast<std::int64_t>(strategy.plans));
  json.set("estimated_plans", static_cast<std::int64_t>(strategy.estimated));
  json.set("best", strategy.best ? plan_json(*strategy.best) : Json());
  json.set("plain", plan_json(strategy.plain)).set("leanest", plan_json(strategy.leanest));
  Json steps = Json::array(), others = Json::array();
  for (const fit::StrategyStep& step : strategy.steps) {
    Json row;
    row.set("change", step.change).set("peak_after_bytes", step.peak_after.count).set("saves_bytes", step.saves.count);
    steps.push(row.set("slow_down_after", step.slowdown_after).set("verdict_after", fit::name_of(step.verdict_after)));
  }
  for (const fit::Plan& plan : strategy.alternatives) others.push(plan_json(plan));
  return json.set("steps", std::move(steps)).set("alternatives", std::move(others));
}

}  // namespace gpuwright::cli
