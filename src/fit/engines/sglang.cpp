// SGLang sets aside (1 - mem_fraction_static) of the memory that is free before loading for activations, CUDA graphs
// and communication; weights and the token pool share the rest (profile_max_num_token). So the estimate holds weights,
// the tokens the job needs and what the process takes before loading; its usable bytes are the fraction.
// Sources: python/sglang/srt/server_args.py (_handle_gpu_memory_settings, v0.5; a fixed table before),
// python/sglang/srt/model_executor/model_runner.py (cell size, pool).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "fit/engines/engines.h"
#include "fit/engines/torch_common.h"
#include "fit/engines/vllm_cache.h"
#include "fit/engines/vllm_weights.h"

namespace gpuwright::fit {
namespace {

using model::AttentionKind;
using model::Model;

constexpr std::string_view kArguments = "python/sglang/srt/server_args.py";
constexpr std::string_view kRunner = "python/sglang/srt/model_executor/model_runner.py, profile_max_num_token";

// By device memory in GiB: chunked_prefill_size and the largest batch with a CUDA graph (tp below 4, and from 4 on).
struct CardDefaults {
  double below_gib;
  std::int64_t chunk, graph_batch, graph_batch_parallel;
};
constexpr CardDefaults kCardDefaults[] = {
    {20, 2048, 8, 8},     {35, 2048, 24, 80},    {60, 4096, 32, 160},
    {90, 8192, 256, 512}, {160, 8192, 256, 512}, {1e9, 16384, 512, 512},
};

struct Fraction {
  double value = 0.88;
  std::string formula;
};

// Before 0.5: a reserve by card size, in GiB, plus a share a rank.
double reserve_before_05(double gib, double ranks) {
  if (gib < 35) return 2.8 + ranks / 10;
  if (gib < 90) return 9.5 + ranks / 2;
  return (gib < 160 ? 12.0 : 32.0) + ranks / 2;
}

Result<Fraction> mem_fraction_static(const Job& job, const Target& target) {
  if (job.sglang.mem_fraction_static) {
    const double given = *job.sglang.mem_fraction_static;
    if (!(given > 0) || given >= 1)
      return fail(ErrorCode::bad_input, fmt::format("mem_fraction_static is {}, not a share of one", given));
    return Fraction{given, fmt::format("--mem-fraction-static {:.3g}", given)};
  }
  const double mib = target.total.mib(), gib = target.total.gib();
  if (mib <= 0) return fail(ErrorCode::bad_input, "the GPU has no memory");
  const double ranks = static_cast<double>(job.tensor_parallel) * job.pipeline_parallel;
  double reserve = 1024 * reserve_before_05(gib, ranks);
  std::string formula = fmt::format("{:.1f} GiB kept back by card size", reserve / 1024);
  if (version_at_least(job.engine_version, "0.5")) {
    const auto* card = std::find_if(std::begin(kCardDefaults), std::end(kCardDefaults),
                                    [&](const CardDefaults& row) { return gib < row.below_gib; });
    const std::int64_t chunk = job.sglang.chunked_prefill_size.value_or(card->chunk);
    const std::int64_t batch = job.tensor_parallel >= 4 ? card->graph_batch_parallel : card->graph_batch;
    reserve = 512 + 1.5 * static_cast<double>(std::max<std::int64_t>(chunk, 2048)) + 2 * static_cast<double>(batch) +
              ranks / 8 * 1024;
    if (gib > 60) reserve = std::max(reserve, 10.0 * 1024);
    formula = fmt::format("512 + 1.5 x {} chunk + 2 x {} graph batch + 128 x {} ranks = {:.0f} MiB kept back", chunk,
                          batch, static_cast<int>(ranks), reserve);
  }
  if (reserve >= mib)
    return fail(ErrorCode::unsupported, fmt::format("SGLang keeps back more than {} has", target.name));
  return Fraction{std::round(1000 * (mib - reserve) / mib) / 1000, formula};
}

struct Pool {
  Bytes token;          // of every layer together
  Bytes sliding_token;  // of it, layers with a window
  Bytes state;          // recurrent, one sequence
};

Pool pool_of(const Model& model, const Job& job, const LayerRange& layers) {
  Pool pool;
  const model::Dtype key = cache_type(job.key_type, model),
                     value = cache_type(job.value_type ? job.value_type : job.key_type, model);
  for (std::size_t i = layers.first; i < layers.last; ++i) {
    const model::Attention& attention = model.layers[i].attention;
    const Bytes token = vllm_token_bytes(attention, job.tensor_parallel, key, value);
    pool.token += token;
    if (attention.kind == AttentionKind::sliding || attention.kind == AttentionKind::chunked)
      pool.sliding_token += token;
    if (model.layers[i].recurrent.kind != model::RecurrentKind::none)
      pool.state += vllm_state_bytes(model.layers[i].recurrent, job.tensor_parallel, 2, 4);
  }
  return pool;
}

std::int64_t context_of(const Model& model, const Job& job) {
  if (job.context_tokens) return *job.context_tokens;
  if (job.prompt_tokens) return *job.prompt_tokens + job.new_tokens.value_or(1);
  return model.context_length > 0 ? model.context_length : 4096;
}

// swa_full_tokens_ratio: the pool of sliding layers is 0.8 of the other where the hybrid pool is used.
constexpr double kSlidingRatio = 0.8;

Result<GpuEstimate> estimate_rank(const Model& model, const Job& job, const Target& target, std::size_t index) {
  const auto ranks = static_cast<std::size_t>(job.tensor_parallel),
             stages = static_cast<std::size_t>(job.pipeline_parallel);
  VllmRank rank;
  rank.tensor_parallel = job.tensor_parallel;
  rank.layers = pipeline_layers(model.layers.size(), stages, index / ranks);
  rank.first_stage = index / ranks == 0;
  rank.last_stage = index / ranks + 1 == stages;
  const VllmWeights weights = vllm_weights(model, rank);
  const Fraction fraction = GW_TRY(mem_fraction_static(job, target));
  const Pool pool = pool_of(model, job, rank.layers);
  const std::int64_t tokens = context_of(model, job) * job.sequences;

  Instant load{"load", {}, "--quantization, --tp"};
  load.components.push_back(Component::exact(
      ComponentKind::weights, Meter::tensor, weights.tensors,
      fmt::format("tensors of blocks {}-{} / tp {}", rank.layers.first, rank.layers.last, job.tensor_parallel),
      "python/sglang/srt/layers/linear.py"));
  const Bytes extra = weights.rounding + weights.rotary;
  load.components.push_back(
      {ComponentKind::weights,
       Meter::allocated,
       {},
       extra,
       extra,
       fmt::format("merged matrices rounded to 2 MiB, rotary tables {}", to_string(weights.rotary)),
       "CUDACachingAllocator.cpp"});
  const std::string_view outside = job.tensor_parallel > 1 ? "process_tensor_parallel_bytes" : "process_bytes";
  const Constant process = GW_TRY(constant(Engine::sglang, outside, job.engine_version, target.architecture));
  load.components.push_back(ranged(job.tensor_parallel > 1 ? ComponentKind::communication : ComponentKind::runtime,
                                   Meter::device, process, "CUDA context, libraries and NCCL before loading"));
  Instant serve = load;
  serve.name = "serving";
  serve.knob = "--context-length, --max-running-requests, --kv-cache-dtype fp8_e4m3, --mem-fraction-static";
  Component cache = Component::exact(ComponentKind::kv_cache, Meter::tensor, pool.token * tokens,
                                     fmt::format("{} x {} tokens", to_string(pool.token), with_thousands(tokens)),
                                     std::string(kRunner));
  cache.low -= (pool.sliding_token * tokens).scaled(1 - kSlidingRatio);
  serve.components.push_back(cache);
  if (pool.state > Bytes{})
    serve.components.push_back(Component::exact(ComponentKind::recurrent_state, Meter::tensor,
                                                pool.state * job.sequences,
                                                "convolution in 16 bits, state in fp32, one a sequence",
                                                "python/sglang/srt/mem_cache/memory_pool.py, MambaPool"));
  GpuEstimate gpu;
  gpu.gpu = target.name;
  gpu.meter = Meter::device;
  gpu.instants = {load, serve};
  const Bytes room = target.free - job.reserve;
  const Bytes process_expected = load.components.back().expected;
  gpu.usable = process_expected + (room - process_expected).scaled(fraction.value);
  const Bytes needed = pool.token * tokens + pool.state * job.sequences;
  if (job.vllm.kv_budget && needed > *job.vllm.kv_budget) gpu.at_best = Verdict::no;
  gpu.usable_formula = fmt::format("{:.3g} of what is free before loading ({})", fraction.value, fraction.formula);
  return gpu;
}

class SglangEngine final : public EngineModel {
 public:
  Result<Estimate> estimate(const Model& model, const Job& job, const std::vector<Target>& targets) const override;
};

Capacity token_pool(const Model& model, const Job& job, const GpuEstimate& gpu) {
  const LayerRange layers = pipeline_layers(model.layers.size(), static_cast<std::size_t>(job.pipeline_parallel), 0);
  const Pool pool = pool_of(model, job, layers);
  const Instant& serve = gpu.instants.back();
  const auto left = [&](Bytes all, Bytes cache) {
    const Bytes bytes = job.vllm.kv_budget.value_or(gpu.usable - (all - cache));
    return pool.token > Bytes{} ? std::max<std::int64_t>(bytes.count / pool.token.count, 0) : 0;
  };
  const Range all = serve.total(), cache = serve.total_of(ComponentKind::kv_cache);
  return {"kv_cache_tokens",
          left(all.high, cache.high),
          left(all.expected, cache.expected),
          left(all.low, cache.low),
          fmt::format("what weights leave of the fraction / {} a token", to_string(pool.token)),
          std::string(kRunner)};
}

Result<Estimate> SglangEngine::estimate(const Model& model, const Job& job, const std::vector<Target>& targets) const {
  for (const model::Layer& layer : model.layers)
    if (layer.attention.heads > 0 && layer.attention.heads % job.tensor_parallel != 0)
      return fail(ErrorCode::bad_input, fmt::format("{} attention heads cannot be divided by tensor parallel {}",
                                                    layer.attention.heads, job.tensor_parallel));
  if (static_cast<std::size_t>(job.tensor_parallel) * static_cast<std::size_t>(job.pipeline_parallel) < targets.size())
    return fail(ErrorCode::bad_input, fmt::format("{} GPUs need --tp {}", targets.size(), targets.size()));
  if (static_cast<std::size_t>(job.pipeline_parallel) > std::max<std::size_t>(model.layers.size(), 1))
    return fail(ErrorCode::bad_input, "there are more pipeline stages than layers");
  GW_TRY(check_trained_context(model, job, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"));
  GW_TRY(check_magnitude(model, context_of(model, job), job.sequences));
  Estimate answer;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    answer.per_gpu.push_back(GW_TRY(estimate_rank(model, job, targets[i], i)));
    answer.per_gpu.back().rank = static_cast<int>(i);
    Capacity tokens = token_pool(model, job, answer.per_gpu.back());
    if (answer.capacities.empty()) answer.capacities.push_back(tokens);
    if (tokens.expected < answer.capacities.front().expected) answer.capacities.front() = tokens;
  }
  const std::int64_t context = std::max<std::int64_t>(context_of(model, job), 1);
  const Capacity& tokens = answer.capacities.front();
  answer.capacities.push_back({"max_concurrency", tokens.low / context, tokens.expected / context,
                               tokens.high / context, fmt::format("tokens / {} of one sequence", context),
                               std::string(kRunner)});
  answer.notes.push_back(
      fmt::format("SGLang fills its fraction with the token pool and keeps the rest for activations "
                  "and CUDA graphs ({}).",
                  kArguments));
  if (job.vllm.kv_budget)
    answer.notes.push_back(fmt::format("The token pool was given as {}.", to_string(*job.vllm.kv_budget)));
  if (pool_of(model, job, {0, model.layers.size()}).sliding_token > Bytes{})
    answer.notes.emplace_back(
        "Sliding layers are priced like full ones; low is a hybrid pool with swa_full_tokens_ratio 0.8.");
  return answer;
}

}  // namespace

const EngineModel& sglang_engine() {
  static const SglangEngine engine;
  return engine;
}

}  // namespace gpuwright::fit
