#include "predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "fit/fit.h"
#include "fit/kv_cache.h"
#include "fit/solve.h"
#include "library.h"
#include "reading.h"
#include "scenario.h"
#include "subject.h"
#include "training.h"
#include "vocabulary.h"

namespace gpuwright::scorer {
namespace {

using fit::ComponentKind;

Prediction from(const fit::Range& range) {
  return {range.low.count, range.expected.count, range.high.count};
}

std::string_view part_of(const Row& row) {
  return row.settings.text("part").value_or("");
}

// ---------------------------------------------------------------- one component each

struct Question {
  const Row& row;
  const model::Model& model;
  const Scenario& scenario;
};

Result<fit::Estimate> estimate(const Question& question) {
  return fit::estimate(question.model, question.scenario.job, question.scenario.targets);
}

Result<Prediction> at_place(const Question& question, const std::vector<ComponentKind>& kinds) {
  const fit::Estimate answer = GW_TRY(estimate(question));
  if (question.row.where == "host" || question.row.where == "output") return from(read_host(answer, kinds));
  return from(GW_TRY(read_gpus(question.row, answer, sum_of(kinds))));
}

Result<Prediction> weights(const Question& question) {
  const Row& row = question.row;
  const std::string_view part = part_of(row);
  if (row.where == "mmproj") {
    Bytes bytes;
    for (const model::Tensor& tensor : question.model.tensors)
      if (tensor.role == model::TensorRole::vision) bytes += tensor.bytes;
    if (bytes.count == 0) return fail(ErrorCode::unsupported, "the projector's tensors are not known");
    return Prediction{bytes.count, bytes.count, bytes.count};
  }
  if (!part.empty() && part != "repeating-layers")
    return fail(ErrorCode::unsupported, fmt::format("weights: the part \"{}\" is not predicted", part));
  if (row.where == "file" || row.meter == "file") {
    const std::int64_t bytes = question.model.weight_bytes().count;
    return Prediction{bytes, bytes, bytes};
  }
  return at_place(question, {ComponentKind::weights});
}

// Bytes of so many tokens in the cache of one tensor-parallel rank, without any engine's paging.
Bytes cache_of_tokens(const model::Model& model, const fit::Job& job, std::int64_t tokens) {
  const model::Dtype key = job.key_type.value_or(model::Dtype::f16), value = job.value_type.value_or(key);
  Bytes total;
  for (const model::Layer& layer : model.layers) {
    model::Attention attention = layer.attention;
    if (attention.kind != model::AttentionKind::latent)
      attention.kv_heads =
          attention.kv_heads == 0 ? 0 : std::max<std::int64_t>(attention.kv_heads / job.tensor_parallel, 1);
    total += fit::cache_bytes_per_token(attention, key, value) * tokens;
  }
  return total;
}

Result<Prediction> cache(const Question& question) {
  const Row& row = question.row;
  const fit::Job& job = question.scenario.job;
  const std::string_view per = row.settings.text("per").value_or("");
  if (per == "token" || part_of(row) == "tokens-in-ctx") {
    const std::int64_t tokens = per == "token" ? 1 : job.context_tokens.value_or(0);
    if (tokens < 1) return fail(ErrorCode::bad_input, "ctx is not told");
    const std::int64_t bytes = cache_of_tokens(question.model, job, tokens).count;
    return Prediction{bytes, bytes, bytes};
  }
  std::vector<ComponentKind> kinds = {ComponentKind::kv_cache};
  if (part_of(row) == "attention+recurrent" || row.component == "kv-recurrent")
    kinds.push_back(ComponentKind::recurrent_state);
  Prediction prediction = GW_TRY(at_place(question, kinds));
  if (per.empty()) return prediction;
  if (per != "seq" && per != "layer-seq") return fail(ErrorCode::unsupported, fmt::format("kv per {}", per));
  const std::int64_t layers = per == "seq" ? 1 : std::max<std::int64_t>(1, std::ssize(question.model.layers));
  const std::int64_t share = job.sequences * layers;
  return Prediction{prediction.low / share, prediction.expected / share, prediction.high / share};
}

Result<Prediction> compute(const Question& question) {
  const Row& row = question.row;
  if (part_of(row) == "cuda-graphs") return at_place(question, {ComponentKind::graphs});
  if (row.where == "mmproj") return fail(ErrorCode::unsupported, "the projector's own compute buffer is not predicted");
  if (!part_of(row).empty() && row.where != "draft")
    return fail(ErrorCode::unsupported, fmt::format("compute: the part \"{}\" is not predicted", part_of(row)));
  if (row.where == "output") return at_place(question, {ComponentKind::output_buffer});
  return at_place(question, {ComponentKind::compute_buffer, ComponentKind::activations, ComponentKind::logits});
}

Result<Prediction> overhead(const Question& question) {
  const std::string_view part = part_of(question.row);
  const auto outside = [&](std::vector<ComponentKind> kinds) -> Result<Prediction> {
    const fit::Estimate answer = GW_TRY(estimate(question));
    return from(GW_TRY(read_gpus(question.row, answer, outside_of_framework(std::move(kinds)))));
  };
  if (part == "cuda-graphs") return outside({ComponentKind::graphs});
  if (part == "non-torch") return outside({ComponentKind::runtime, ComponentKind::communication});
  if (part == "unaccounted" || part == "context") return outside({ComponentKind::runtime});
  if (part == "nccl-communicators" || part == "nccl-communicator") return outside({ComponentKind::communication});
  if (part == "nccl-communicator+context") return outside({ComponentKind::communication, ComponentKind::runtime});
  if (part.empty())
    return at_place(question, {ComponentKind::runtime, ComponentKind::communication, ComponentKind::graphs,
                               ComponentKind::allocator});
  return fail(ErrorCode::unsupported, fmt::format("overhead: the part \"{}\" is not predicted", part));
}

Result<Prediction> capacity(const Question& question, std::string_view name) {
  if (!question.scenario.memory_known && !question.scenario.job.vllm.kv_budget)
    return fail(ErrorCode::bad_input, "neither the GPU's memory nor the KV budget is told");
  const fit::Estimate answer = GW_TRY(estimate(question));
  for (const fit::Capacity& found : answer.capacities)
    if (found.name == name) return Prediction{found.low, found.expected, found.high};
  return fail(ErrorCode::unsupported,
              fmt::format("{} derives no {}", fit::name_of(question.scenario.job.engine), name));
}

// What an engine with a budget has left for its cache: negative when the rest alone exceeds the budget.
Result<Prediction> budget(const Question& question) {
  if (!question.scenario.memory_known) return fail(ErrorCode::bad_input, "the GPU's memory is not told");
  const fit::Estimate answer = GW_TRY(estimate(question));
  std::optional<Prediction> least;
  for (const fit::GpuEstimate& gpu : answer.per_gpu) {
    if (gpu.instants.empty()) continue;
    const fit::Instant& serving = gpu.instants.back();
    const fit::Range all = serving.total(), kv = serving.total_of(ComponentKind::kv_cache),
                     state = serving.total_of(ComponentKind::recurrent_state);
    const Prediction left{(gpu.usable - (all.high - kv.high - state.high)).count,
                          (gpu.usable - (all.expected - kv.expected - state.expected)).count,
                          (gpu.usable - (all.low - kv.low - state.low)).count};
    if (!least || left.expected < least->expected) least = left;
  }
  if (!least) return fail(ErrorCode::unsupported, "the estimate has no GPU");
  return *least;
}

Result<Prediction> largest_context(const Question& question) {
  if (!question.scenario.memory_known) return fail(ErrorCode::bad_input, "the GPU's memory is not told");
  const fit::Solution strict = GW_TRY(
      fit::largest(fit::Quantity::context, question.model, question.scenario.job, question.scenario.targets, true));
  const fit::Solution expected = GW_TRY(
      fit::largest(fit::Quantity::context, question.model, question.scenario.job, question.scenario.targets, false));
  const std::int64_t ahead = expected.value - strict.value;
  return Prediction{strict.value, expected.value, expected.value + ahead};
}

Result<Prediction> total(const Question& question) {
  const fit::Estimate answer = GW_TRY(estimate(question));
  if (question.row.where != "host")
    return from(GW_TRY(read_gpus(question.row, answer, GW_TRY(total_seen_by(question.row.meter)))));
  fit::Range sum;
  for (const fit::Component& part : answer.host) sum = sum + fit::Range{part.low, part.expected, part.high};
  return from(sum);
}

Result<Prediction> component(const Question& question) {
  const std::string_view name = question.row.component;
  if (name == "weights") return weights(question);
  if (name == "kv" || name == "kv-recurrent") return cache(question);
  if (name == "recurrent") return at_place(question, {ComponentKind::recurrent_state});
  if (name == "compute") return compute(question);
  if (name == "overhead") return overhead(question);
  if (name == "activation") return at_place(question, {ComponentKind::activations, ComponentKind::logits});
  if (name == "budget") return budget(question);
  if (name == "blocks") return capacity(question, "kv_cache_blocks");
  if (name == "tokens") return capacity(question, "kv_cache_tokens");
  if (name == "max-context") return largest_context(question);
  if (name == "total-peak") return total(question);
  return fail(ErrorCode::unsupported, fmt::format("the component \"{}\" is not predicted", name));
}

// A printed range (memory of the card, KV budget) widens the prediction by what its ends give.
bool depends_on_ranges(const Row& row) {
  return row.component == "budget" || row.component == "blocks" || row.component == "tokens" ||
         row.component == "max-context";
}

Status check_asked(const Row& row) {
  const std::string_view part = part_of(row);
  const auto& parts = known_parts();
  if (!part.empty() && std::find(parts.begin(), parts.end(), part) == parts.end())
    return fail(ErrorCode::bad_input, fmt::format("unknown part \"{}\"", printable(part)));
  if (part == "context+other-processes")
    return fail(ErrorCode::unsupported, "what other processes take cannot be told");
  if (part == "repack") return fail(ErrorCode::unsupported, "repacked copies of weights are not predicted");
  return {};
}

}  // namespace

bool is_llama_family(const Row& row) {
  const auto engine = engine_of(row);
  return engine && (engine->engine == fit::Engine::llama_cpp || engine->engine == fit::Engine::ollama);
}

Result<Answer> predict(const Row& row, const catalog::Catalog& catalog) {
  GW_TRY(check_asked(row));
  if (is_library(row)) return Answer{GW_TRY(predict_library(row, catalog)), {}};
  if (is_training(row)) return predict_training(row, catalog);
  const Scenario middle = GW_TRY(scenario_of(row, catalog, End::middle));
  ResolvedModel resolved = GW_TRY(model_of(row));
  const model::Model model = GW_TRY(asked_part(row, resolved.model));

  const auto ask = [&](Scenario scenario) -> Result<Prediction> {
    GW_TRY(adapt(row, resolved.model, scenario));
    // A budget that a log printed answers for blocks and tokens, never for itself.
    if (row.component == "budget") scenario.job.vllm.kv_budget.reset();
    return component({row, model, scenario});
  };
  Answer answer{GW_TRY(ask(middle)), std::move(resolved.notes)};
  if (!depends_on_ranges(row)) return answer;
  for (const End end : {End::low, End::high}) {
    const Prediction there = GW_TRY(ask(GW_TRY(scenario_of(row, catalog, end))));
    answer.prediction.low = std::min(answer.prediction.low, there.low);
    answer.prediction.high = std::max(answer.prediction.high, there.high);
  }
  return answer;
}

std::string estimate_text(const Row& row, const model::Model& model, const fit::Estimate& answer,
                          const std::vector<std::string>& notes) {
  std::string text = fmt::format("{}: {} ({}), {} parameters, {}\n", row.id, model.name, model.family,
                                 in_billions(model.parameters()), model.weight_format);
  const auto line = [&](std::string_view where, const fit::Component& part) {
    text += fmt::format("  {} {} [{}] {} {} {} | {} | {}\n", where, fit::label_of(part.kind),
                        fit::name_of(part.first_seen_by), part.low.count, part.expected.count, part.high.count,
                        part.formula, part.source);
  };
  for (const fit::GpuEstimate& gpu : answer.per_gpu) {
    text += fmt::format("  GPU {} {} usable {}\n", gpu.rank, gpu.gpu, gpu.usable.count);
    for (const fit::Instant& instant : gpu.instants)
      for (const fit::Component& part : instant.components) line("  " + instant.name + ":", part);
  }
  for (const fit::Component& part : answer.host) line("host", part);
  for (const fit::Capacity& found : answer.capacities)
    text +=
        fmt::format("  capacity {} {} {} {} | {}\n", found.name, found.low, found.expected, found.high, found.formula);
  for (const std::string& note : answer.notes) text += fmt::format("  note {}\n", note);
  for (const std::string& note : notes) text += fmt::format("  note {}\n", note);
  return text;
}

Result<std::string> explain(const Row& row, const catalog::Catalog& catalog) {
  GW_TRY(check_asked(row));
  if (is_training(row)) return explain_training(row, catalog);
  Scenario scenario = GW_TRY(scenario_of(row, catalog, End::middle));
  const ResolvedModel resolved = GW_TRY(model_of(row));
  const model::Model model = GW_TRY(asked_part(row, resolved.model));
  GW_TRY(adapt(row, resolved.model, scenario));
  return estimate_text(row, model, GW_TRY(fit::estimate(model, scenario.job, scenario.targets)), resolved.notes);
}

}  // namespace gpuwright::scorer
