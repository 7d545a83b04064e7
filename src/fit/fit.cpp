#include "fit/fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "fit/engine.h"
#include "fit/learn/calibration.h"
#include "fit/support.h"

namespace gpuwright::fit {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;
constexpr std::int64_t kMostSequences = 1 << 20;

Status check_count(std::int64_t value, std::int64_t most, std::string_view what) {
  if (value >= 1 && value <= most) return {};
  return fail(ErrorCode::bad_input, fmt::format("{} must be between 1 and {}, not {}", what, most, value));
}

// Without layers there is neither a cache nor a place for most tensors: any figure would be far too small.
Status check_layers(const model::Model& model) {
  if (model.source == model::Source::onnx)
    return fail(ErrorCode::unsupported, fmt::format("{}: none of the engines runs an ONNX graph", model.name),
                "name the original model: its folder with config.json, or its preset");
  const bool tower_alone = model.encoder.has_value() || model.vision.has_value();
  if (!model.layers.empty() || tower_alone) return {};
  return fail(ErrorCode::unsupported, fmt::format("{}: the layers of the model are not known", model.name),
              "put config.json beside the weights");
}

// What one sequence asks for must fit into what the context leaves to it.
Status check_tokens(const Job& job) {
  if (!job.context_tokens || !job.prompt_tokens) return {};
  const bool divided = job.engine == Engine::llama_cpp && !job.llama.unified_kv;
  const std::int64_t each = divided ? *job.context_tokens / job.sequences : *job.context_tokens;
  const std::int64_t wanted = *job.prompt_tokens + job.new_tokens.value_or(0);
  if (wanted <= each) return {};
  return fail(ErrorCode::bad_input,
              fmt::format("prompt and new tokens are {} together, the context of a sequence is {}", wanted, each),
              "leave the context out, or make it larger");
}

Status check(const model::Model& model, const Job& job, const std::vector<Target>& targets) {
  if (targets.empty()) return fail(ErrorCode::bad_input, "no GPU was named", "name one with --gpu");
  GW_TRY(check_layers(model));
  GW_TRY(check_count(job.sequences, kMostSequences, "the number of sequences"));
  GW_TRY(check_count(job.context_tokens.value_or(1), kMostTokens, "the context"));
  GW_TRY(check_count(job.prompt_tokens.value_or(1), kMostTokens, "the prompt"));
  GW_TRY(check_count(job.new_tokens.value_or(1), kMostTokens, "the number of new tokens"));
  GW_TRY(check_tokens(job));
  GW_TRY(check_count(job.tensor_parallel, 1024, "tensor parallelism"));
  GW_TRY(check_count(job.pipeline_parallel, 1024, "pipeline parallelism"));
  if (job.reserve < Bytes{}) return fail(ErrorCode::bad_input, "the reserve is negative");
  const std::int64_t wanted = std::int64_t{job.tensor_parallel} * job.pipeline_parallel;
  if (wanted > 1 && wanted != static_cast<std::int64_t>(targets.size()))
    return fail(ErrorCode::bad_input,
                fmt::format("tensor parallel {} x pipeline parallel {} needs {} GPUs, {} given", job.tensor_parallel,
                            job.pipeline_parallel, wanted, targets.size()),
                fmt::format("write --gpu NAMEx{}", wanted));
  return {};
}

std::size_t binding_instant(const std::vector<Instant>& instants) {
  std::size_t binding = 0;
  for (std::size_t i = 1; i < instants.size(); ++i)
    if (instants[i].total().expected > instants[binding].total().expected) binding = i;
  return binding;
}

Verdict judge(const GpuEstimate& gpu) {
  Bytes expected, high;
  for (const Instant& instant : gpu.instants) {
    const Range total = instant.total();
    expected = std::max(expected, total.expected);
    high = std::max(high, total.high);
  }
  if (expected > gpu.usable) return Verdict::no;
  return std::max(high > gpu.usable ? Verdict::tight : Verdict::fits, gpu.at_best);
}

}  // namespace

Result<Estimate> estimate(const model::Model& model, const Job& job, const std::vector<Target>& targets) {
  GW_TRY(check(model, job, targets));
  GW_TRY(check_support(model, job));
  for (const Target& target : targets) GW_TRY(check_hardware(model, job, target));
  const EngineModel* engine = engine_model(job.engine);
  if (engine == nullptr)
    return fail(ErrorCode::unsupported, fmt::format("no memory model of {} exists", name_of(job.engine)));
  Estimate answer = GW_TRY(engine->estimate(model, job, targets));
  apply_corrections(answer, job);
  for (std::string& note : GW_TRY(support_notes(model, job, targets))) answer.notes.push_back(std::move(note));
  for (GpuEstimate& gpu : answer.per_gpu) {
    if (gpu.instants.empty()) return fail(ErrorCode::internal, "an engine gave no instants");
    gpu.binding = binding_instant(gpu.instants);
    gpu.verdict = judge(gpu);
  }
  return answer;
}

}  // namespace gpuwright::fit
