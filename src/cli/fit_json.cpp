#include <array>

#include "cli/fit_answer.h"
#include "cli/fit_train.h"
#include "fit/engine.h"

namespace gpuwright::cli {
namespace {

using fit::Component;
using fit::ComponentKind;
using fit::Range;

Json range_json(const Range& range) {
  Json json;
  json.set("low_bytes", range.low.count)
      .set("expected_bytes", range.expected.count)
      .set("high_bytes", range.high.count);
  return json;
}

Json components_json(const fit::Instant& instant) {
  Json json = Json::object();
  for (int kind = 0; kind < fit::kComponentKinds; ++kind) {
    const auto which = static_cast<ComponentKind>(kind);
    if (which == ComponentKind::output_buffer) continue;
    const std::int64_t bytes = instant.total_of(which).expected.count;
    if (which >= ComponentKind::gradients && bytes == 0) continue;  // of training alone
    json.set(fit::json_key(which), bytes);
  }
  return json;
}

Json component_json(const Component& component) {
  Json json;
  json.set("kind", fit::json_key(component.kind)).set("first_seen_by", fit::name_of(component.first_seen_by));
  json.set("low_bytes", component.low.count).set("expected_bytes", component.expected.count);
  json.set("high_bytes", component.high.count).set("formula", component.formula).set("source", component.source);
  return json;
}

Json gpu_json(const fit::GpuEstimate& gpu) {
  const Range total = gpu.peak().total();
  Json json;
  json.set("gpu", gpu.gpu).set("rank", gpu.rank);
  json.set("low_bytes", total.low.count)
      .set("expected_bytes", total.expected.count)
      .set("high_bytes", total.high.count);
  json.set("usable_bytes", gpu.usable.count).set("usable_formula", gpu.usable_formula);
  json.set("meter", fit::name_of(gpu.meter)).set("verdict", fit::name_of(gpu.verdict));
  json.set("binding_instant", gpu.peak().name).set("lowered_by", gpu.peak().knob);
  json.set("components", components_json(gpu.peak()));
  return json;
}

Json instants_json(const fit::Estimate& estimate) {
  Json list = Json::array();
  for (const fit::GpuEstimate& gpu : estimate.per_gpu)
    for (const fit::Instant& instant : gpu.instants) {
      Json json = range_json(instant.total());
      Json row;
      row.set("rank", gpu.rank).set("name", instant.name);
      for (const auto& [key, value] : json.members()) row.set(key, value);
      Json components = Json::array();
      for (const Component& component : instant.components) components.push(component_json(component));
      list.push(row.set("components", std::move(components)));
    }
  return list;
}

template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json dtype_json(const std::optional<model::Dtype>& dtype) {
  return dtype ? Json(model::traits(*dtype).name) : Json();
}

// Options that were not given are null: the engine's own default holds, and a note or formula says which it is.
Json job_json(const fit::Job& job) {
  Json json;
  json.set("engine", fit::name_of(job.engine));
  json.set("engine_version", job.engine_version.empty() ? Json() : Json(job.engine_version));
  json.set("context_tokens", optional_json(job.context_tokens)).set("prompt_tokens", optional_json(job.prompt_tokens));
  json.set("new_tokens", optional_json(job.new_tokens)).set("sequences", job.sequences);
  json.set("key_type", dtype_json(job.key_type)).set("value_type", dtype_json(job.value_type));
  json.set("tensor_parallel", job.tensor_parallel).set("pipeline_parallel", job.pipeline_parallel);
  json.set("reserve_bytes", job.reserve.count);
  if (job.engine == fit::Engine::llama_cpp || job.engine == fit::Engine::ollama)
    json.set("gpu_layers", optional_json(job.llama.gpu_layers)).set("ubatch", optional_json(job.llama.ubatch));
  if (job.engine == fit::Engine::vllm || job.engine == fit::Engine::sglang)
    json.set("gpu_memory_utilization", optional_json(job.vllm.gpu_memory_utilization))
        .set("max_num_batched_tokens", optional_json(job.vllm.max_batched_tokens))
        .set("max_num_seqs", optional_json(job.vllm.max_sequences));
  return json;
}

Json advice_json(const fit::Estimate& estimate) {
  Json list = Json::array();
  for (const fit::Advice& advice : estimate.advice) {
    Json json;
    json.set("change", advice.change).set("cost", advice.cost).set("saves_bytes", advice.saves.count);
    list.push(json.set("verdict_after", fit::name_of(advice.verdict_after)));
  }
  return list;
}

Json capacities_json(const fit::Estimate& estimate) {
  Json list = Json::array();
  for (const fit::Capacity& capacity : estimate.capacities) {
    Json json;
    json.set("name", capacity.name)
        .set("low", capacity.low)
        .set("expected", capacity.expected)
        .set("high", capacity.high);
    list.push(json.set("formula", capacity.formula).set("source", capacity.source));
  }
  return list;
}

Json strings_json(const std::vector<std::string>& strings) {
  Json list = Json::array();
  for (const std::string& text : strings) list.push(text);
  return list;
}

void add_estimate(Json& json, const fit::Estimate& estimate) {
  Json gpus = Json::array(), verdicts = Json::array(), host = Json::array();
  for (const fit::GpuEstimate& gpu : estimate.per_gpu) {
    gpus.push(gpu_json(gpu));
    Json verdict;
    verdicts.push(verdict.set("rank", gpu.rank).set("gpu", gpu.gpu).set("verdict", fit::name_of(gpu.verdict)));
  }
  for (const Component& component : estimate.host) host.push(component_json(component));
  json.set("per_gpu", std::move(gpus)).set("instants", instants_json(estimate));
  json.set("host_bytes", estimate.host_bytes().count).set("host", std::move(host));
  json.set("capacities", capacities_json(estimate)).set("verdict", fit::name_of(estimate.verdict()));
  json.set("verdicts", std::move(verdicts))
      .set("advice", advice_json(estimate))
      .set("notes", strings_json(estimate.notes));
}

void add_solution(Json& json, const FitAnswer& answer) {
  if (!answer.largest()) return;
  Json solution;
  solution.set("quantity", name_of(*answer.request->maximise)).set("value", *answer.largest());
  json.set("largest", std::move(solution));
}

void add_choices(Json& json, const FitAnswer& answer) {
  if (!answer.request->smallest_gpu) return;
  Json list = Json::array();
  for (const fit::GpuChoice& choice : answer.gpu_choices) {
    Json row;
    row.set("gpu", choice.accelerator->name).set("id", choice.accelerator->id).set("count", answer.request->gpu_count);
    row.set("usable_bytes", choice.accelerator->usable().count);
    row.set("usable_is_verified", choice.accelerator->memory_is_verified());
    row.set("expected_bytes", choice.estimate.per_gpu.front().peak().total().expected.count);
    list.push(row.set("verdict", fit::name_of(choice.estimate.verdict())));
  }
  json.set("smallest_gpus", std::move(list));
  json.set("smallest_gpus_among", answer.request->among.empty() ? "boards" : answer.request->among);
}

}  // namespace

std::string_view name_of(fit::Quantity quantity) {
  constexpr std::array<std::string_view, 4> kNames = {"context", "batch", "layers", "sequence"};
  return kNames[static_cast<std::size_t>(quantity)];
}

Json to_json(const FitAnswer& answer) {
  const FitRequest& request = *answer.request;
  Json json;
  json.set("schema", "gpuwright.fit/1");
  const FitItem& first = request.items.front();
  if (request.items.size() == 1) {
    json.set("model", to_json(first.model));
    json.set("job", first.training    ? training_job_json(training_job_of(answer))
                    : answer.solution ? job_json(answer.solution->job)
                                      : job_json(first.job));
  } else {
    Json items = Json::array();
    for (const FitItem& item : request.items) {
      Json row;
      items.push(row.set("model", to_json(item.model)).set("job", job_json(item.job)));
    }
    json.set("items", std::move(items));
  }
  add_solution(json, answer);
  if (answer.strategy) json.set("strategy", strategy_json(*answer.strategy, *request.strategy));
  add_choices(json, answer);
  add_estimate(json, answer.estimate);
  return json;
}

}  // namespace gpuwright::cli
