// Advice is never a guess: each knob changes the job (or the model, or the GPUs), the changed job is estimated, and
// only changes that lower the worst GPU's peak are told, in the order of what they cost the user.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "fit/fit.h"
#include "fit/solve.h"
#include "model/quantize.h"

namespace gpuwright::fit {
namespace {

struct Setup {
  std::shared_ptr<const model::Model> original;  // as the user gave it: formats are converted from here
  std::shared_ptr<const model::Model> model;
  Job job;
  std::vector<Target> targets;
};

struct Change {
  std::string what;
  std::string cost;
  Setup setup;
};

using MaybeChange = std::optional<Change>;
using Knob = MaybeChange (*)(const Setup&);

bool is_llama(const Job& job) {
  return job.engine == Engine::llama_cpp || job.engine == Engine::ollama;
}
bool is_budgeted(const Job& job) {
  return job.engine == Engine::vllm || job.engine == Engine::sglang;
}

template <class Edit>
Change changed(const Setup& setup, std::string what, std::string cost, Edit edit) {
  Setup next = setup;
  edit(next.job);
  return {std::move(what), std::move(cost), std::move(next)};
}

MaybeChange flash_attention(const Setup& setup) {
  if (is_llama(setup.job) && setup.job.llama.flash_attention == false)
    return changed(setup, "turn flash attention on: --flash-attn on", "nothing; it is faster on every recent GPU",
                   [](Job& job) { job.llama.flash_attention = true; });
  if (setup.job.engine == Engine::transformers && setup.job.transformers.attention == "eager")
    return changed(setup, "use fused attention: attn_implementation=\"sdpa\"", "nothing; it is faster",
                   [](Job& job) { job.transformers.attention = "sdpa"; });
  return std::nullopt;
}

MaybeChange smaller_prefill(const Setup& setup) {
  if (is_llama(setup.job) && setup.job.llama.ubatch.value_or(512) > 128)
    return changed(setup, "process prompts in smaller pieces: --ubatch-size 128", "slower prompt processing",
                   [](Job& job) { job.llama.ubatch = 128; });
  if (setup.job.engine == Engine::vllm && setup.job.vllm.max_batched_tokens.value_or(8192) > 2048)
    return changed(setup, "process prompts in smaller pieces: --max-num-batched-tokens 2048",
                   "slower prompt processing", [](Job& job) { job.vllm.max_batched_tokens = 2048; });
  return std::nullopt;
}

MaybeChange fewer_scheduled(const Setup& setup) {
  if (setup.job.engine != Engine::vllm || setup.job.vllm.max_sequences.value_or(256) <= 32) return std::nullopt;
  const std::int64_t sequences = std::max<std::int64_t>(setup.job.sequences, 16);
  return changed(setup, fmt::format("schedule fewer requests at once: --max-num-seqs {}", sequences),
                 "less throughput under load", [&](Job& job) { job.vllm.max_sequences = sequences; });
}

MaybeChange no_graphs(const Setup& setup) {
  if (setup.job.engine != Engine::vllm || setup.job.vllm.enforce_eager.value_or(false)) return std::nullopt;
  return changed(setup, "do not capture CUDA graphs: --enforce-eager", "slower decoding of small batches",
                 [](Job& job) { job.vllm.enforce_eager = true; });
}

MaybeChange take_more_of_the_card(const Setup& setup) {
  if (setup.job.engine != Engine::vllm || setup.job.vllm.gpu_memory_utilization.value_or(0.9) >= 0.95)
    return std::nullopt;
  return changed(setup, "let the engine take more of the card: --gpu-memory-utilization 0.95",
                 "less room for other processes on the same GPU",
                 [](Job& job) { job.vllm.gpu_memory_utilization = 0.95; });
}

MaybeChange smaller_cache_type(const Setup& setup) {
  using model::Dtype;
  const Dtype now = setup.job.key_type.value_or(Dtype::f16);
  if (model::bits_per_weight(now) < 16) return std::nullopt;
  if (is_llama(setup.job))
    return changed(setup, "store keys and values in 8 bits: --flash-attn on --cache-type-k q8_0 --cache-type-v q8_0",
                   "a small loss of precision", [](Job& job) {
                     job.key_type = job.value_type = Dtype::q8_0;
                     job.llama.flash_attention = true;
                   });
  if (is_budgeted(setup.job))
    return changed(setup,
                   setup.job.engine == Engine::vllm ? "store keys and values in 8 bits: --kv-cache-dtype fp8"
                                                    : "store keys and values in 8 bits: --kv-cache-dtype fp8_e4m3",
                   "a small loss of precision", [](Job& job) { job.key_type = job.value_type = Dtype::f8_e4m3; });
  return std::nullopt;
}

MaybeChange experts_on_host(const Setup& setup) {
  const auto layers = static_cast<std::int64_t>(setup.model->layers.size());
  const bool has_experts = std::any_of(setup.model->layers.begin(), setup.model->layers.end(),
                                       [](const model::Layer& layer) { return layer.feed_forward.experts > 0; });
  if (setup.job.engine != Engine::llama_cpp || !has_experts || setup.job.llama.cpu_moe_layers >= layers)
    return std::nullopt;
  // The fewest layers whose experts must move; memory falls with each, so halve the interval.
  std::int64_t few = setup.job.llama.cpu_moe_layers, many = layers;
  while (many - few > 1) {
    Job job = setup.job;
    job.llama.cpu_moe_layers = few + (many - few) / 2;
    const auto tried = estimate(*setup.model, job, setup.targets);
    (tried && tried->verdict() == Verdict::fits ? many : few) = job.llama.cpu_moe_layers;
  }
  return changed(setup, fmt::format("keep the experts of {} layers in host memory: --n-cpu-moe {}", many, many),
                 "slower decoding; active experts are read over the host's memory bus",
                 [&](Job& job) { job.llama.cpu_moe_layers = many; });
}

MaybeChange shorter_context(const Setup& setup) {
  const auto solved = largest(Quantity::context, *setup.model, setup.job, setup.targets, true);
  if (!solved || solved->value < 512) return std::nullopt;
  const std::int64_t context = solved->value / 256 * 256;
  const std::string option = setup.job.engine == Engine::ollama   ? "num_ctx"
                             : is_llama(setup.job)                ? "--ctx-size"
                             : setup.job.engine == Engine::vllm   ? "--max-model-len"
                             : setup.job.engine == Engine::sglang ? "--context-length"
                                                                  : "prompt + new";
  return changed(setup, fmt::format("shorten the context: {} {}", option, context),
                 "longer conversations and documents are cut",
                 [&](Job& job) { job = solved->job, job.context_tokens = context; });
}

MaybeChange fewer_sequences(const Setup& setup) {
  if (setup.job.sequences <= 1) return std::nullopt;
  const auto solved = largest(Quantity::batch, *setup.model, setup.job, setup.targets, true);
  if (!solved || solved->value < 1 || solved->value >= setup.job.sequences) return std::nullopt;
  return changed(setup, fmt::format("run {} sequences at once instead of {}", solved->value, setup.job.sequences),
                 "less throughput", [&](Job& job) { job = solved->job; });
}

MaybeChange smaller_weights(const Setup& setup, std::string_view format, std::string_view what, std::string_view cost) {
  auto model = model::with_weight_format(*setup.original, format);
  if (!model || model->weight_bytes() >= setup.model->weight_bytes()) return std::nullopt;
  return Change{std::string(what),
                std::string(cost),
                {setup.original, std::make_shared<const model::Model>(std::move(*model)), setup.job, setup.targets}};
}

MaybeChange eight_bit_weights(const Setup& setup) {
  if (is_llama(setup.job))
    return smaller_weights(setup, "Q8_0", "quantise the weights to Q8_0", "next to no measurable loss");
  if (is_budgeted(setup.job))
    return smaller_weights(setup, "fp8", "quantise the weights to FP8: --quantization fp8", "a small loss of quality");
  return smaller_weights(setup, "bnb-int8", "load the weights in 8 bits: load_in_8bit=True",
                         "a small loss; slower decoding");
}

MaybeChange four_bit_weights(const Setup& setup) {
  if (is_llama(setup.job))
    return smaller_weights(setup, "Q4_K_M", "quantise the weights to Q4_K_M", "a moderate loss of quality");
  if (is_budgeted(setup.job))
    return smaller_weights(setup, "awq-int4", "use 4-bit weights: an AWQ or GPTQ checkpoint",
                           "a moderate loss of quality");
  return smaller_weights(setup, "bnb-nf4-dq", "load the weights in 4 bits: load_in_4bit=True, nf4, double quantisation",
                         "a moderate loss of quality; slower decoding");
}

MaybeChange fewer_layers(const Setup& setup) {
  if (!is_llama(setup.job)) return std::nullopt;
  const auto solved = largest(Quantity::layers, *setup.model, setup.job, setup.targets, true);
  if (!solved || solved->value < 1) return std::nullopt;
  return changed(setup, fmt::format("keep part of the layers on the CPU: --n-gpu-layers {}", solved->value),
                 "much slower decoding, by the share of layers left behind", [&](Job& job) { job = solved->job; });
}

MaybeChange twice_the_gpus(const Setup& setup) {
  const std::size_t count = setup.targets.size() * 2;
  if (count > 16 || setup.targets.front().unified_memory) return std::nullopt;
  const std::size_t more = setup.targets.size();
  Change change{fmt::format("use {} GPUs", count),
                more == 1 ? "the price of a second GPU" : fmt::format("the price of {} more GPUs", more), setup};
  const std::vector<Target> once = setup.targets;
  change.setup.targets.insert(change.setup.targets.end(), once.begin(), once.end());
  if (is_budgeted(setup.job)) {
    change.setup.job.tensor_parallel *= 2;
    change.what += fmt::format(": {} {}", setup.job.engine == Engine::vllm ? "--tensor-parallel-size" : "--tp-size",
                               change.setup.job.tensor_parallel);
    change.cost += ", and the link between them";
  }
  return change;
}

// In the order of what they cost. From kFirstCostly on they cost much speed or another GPU.
constexpr Knob kKnobs[] = {
    flash_attention,   smaller_prefill, take_more_of_the_card, fewer_scheduled, smaller_cache_type,
    eight_bit_weights, no_graphs,       fewer_sequences,       shorter_context, four_bit_weights,
    experts_on_host,   fewer_layers,    twice_the_gpus,
};

constexpr std::size_t kFirstCostly = 10;
static_assert(kKnobs[kFirstCostly] == experts_on_host);

// How far the worst GPU is from fitting: expected peak less what it may use. What a change gains is the difference.
Bytes shortfall(const Estimate& estimate) {
  Bytes worst{INT64_MIN};
  for (const GpuEstimate& gpu : estimate.per_gpu) worst = std::max(worst, gpu.peak().total().expected - gpu.usable);
  return worst;
}

struct Plan {
  Setup setup;
  Estimate estimate;
  std::vector<Knob> knobs;
  std::vector<std::string> parts;
};

// Turns the knobs in order, passing over those that do not help at their turn, until the job fits.
std::optional<Plan> turn(const Setup& start, const Estimate& now, const std::vector<Knob>& knobs) {
  Plan plan{start, now, {}, {}};
  for (const Knob knob : knobs) {
    const MaybeChange change = knob(plan.setup);
    if (!change) continue;
    auto after = estimate(*change->setup.model, change->setup.job, change->setup.targets);
    if (!after || shortfall(*after) >= shortfall(plan.estimate)) continue;
    plan.setup = change->setup;
    plan.estimate = std::move(*after);
    plan.knobs.push_back(knob);
    plan.parts.push_back(change->what);
    if (plan.estimate.verdict() == Verdict::fits) return plan;
  }
  return std::nullopt;
}

// When no single cheap change is enough: changes are piled up in the order of their cost until the job fits (the cheap
// ones twice, because a context that cannot be short enough beside large weights can be beside small ones), then each
// that the others do without (Q8_0 when Q4_K_M follows) is taken away again.
std::optional<Advice> combination(const Setup& setup, const Estimate& now) {
  std::vector<Knob> knobs(std::begin(kKnobs), std::begin(kKnobs) + kFirstCostly);
  knobs.insert(knobs.end(), std::begin(kKnobs), std::end(kKnobs));
  auto plan = turn(setup, now, knobs);
  if (!plan) return std::nullopt;
  for (std::size_t i = 0; i < plan->knobs.size();) {
    const auto without = [i](auto list) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      return list;
    };
    auto shorter = turn(setup, now, without(plan->knobs));
    if (shorter && shorter->parts == without(plan->parts))
      plan = std::move(shorter);
    else
      ++i;
  }
  if (plan->parts.size() < 2) return std::nullopt;  // said already
  return Advice{fmt::format("together: {}", fmt::join(plan->parts, "; ")), "the sum of the above",
                shortfall(now) - shortfall(plan->estimate), Verdict::fits};
}

}  // namespace

std::vector<Advice> advise(const model::Model& model, const Job& job, const std::vector<Target>& targets) {
  const auto now = estimate(model, job, targets);
  if (!now) return {};
  // The caller's model outlives this function: share it without owning it.
  const std::shared_ptr<const model::Model> shared(&model, [](const model::Model*) {});
  const Setup setup{shared, shared, job, targets};
  std::vector<Advice> advice;
  bool solved = false;
  for (std::size_t i = 0; i < std::size(kKnobs); ++i) {
    const MaybeChange change = kKnobs[i](setup);
    if (!change) continue;
    const auto after = estimate(*change->setup.model, change->setup.job, change->setup.targets);
    if (!after) continue;
    const Bytes saves = shortfall(*now) - shortfall(*after);
    if (saves <= Bytes{}) continue;
    solved = solved || (i < kFirstCostly && after->verdict() == Verdict::fits);
    advice.push_back({change->what, change->cost, saves, after->verdict()});
  }
  if (!solved)
    if (auto together = combination(setup, *now)) advice.push_back(std::move(*together));
  return advice;
}

}  // namespace gpuwright::fit
