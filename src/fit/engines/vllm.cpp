// vLLM takes a share of the card, whatever the model needs: total x gpu_memory_utilization. Weights, what lives
// outside PyTorch, the peak of a profiling run and (since 0.21) an estimate of CUDA graphs come out of it; the rest
// becomes pages of cache (determine_available_memory, vllm/v1/worker/gpu_worker.py). So the question is not what it
// takes but whether the rest holds the sequences that are wanted: the estimate's cache is what the job needs, its
// usable bytes are the budget, and the capacities say what the rest would hold.
//
// The profiling run is a forward pass of max_num_batched_tokens and, on V1 (since 0.8), a sampler over max_num_seqs
// rows of logits; they follow each other, so the larger one counts:
//   forward  tokens x (3 x feed-forward / tp + 4 x hidden) x 2 B    T4, Qwen2.5-1.5B, 32,768 tokens: 2.016 of 2.02 GiB
//   sampler  tokens x hidden x 2 B + sequences x vocabulary x 38 B  B200, gemma-3-4b, 1,024 rows: 9.58 of 9.96 GiB
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

using model::Model;

constexpr double kLargeCardGib = 70;

struct Settings {
  double utilization = 0.9;
  std::int64_t context = 0;
  std::int64_t batched_tokens = 2048;
  std::int64_t max_sequences = 256;
  std::int64_t block = 16;
  bool v1 = true;
  bool graphs = true;
  bool graphs_in_budget = true;
};

// EngineArgs.get_batch_defaults: larger ones on cards of 70 GiB and more, A100 excepted (v0.8.5 on).
bool is_large_card(const Target& target) {
  return target.total.gib() >= kLargeCardGib && lower(target.name).find("a100") == std::string::npos;
}

// BlockSize in vllm/config/cache.py; each backend takes some of them.
Status check_block(std::int64_t block) {
  constexpr std::int64_t kBlocks[] = {1, 8, 16, 32, 64, 128, 256};
  if (std::find(std::begin(kBlocks), std::end(kBlocks), block) != std::end(kBlocks)) return {};
  return fail(ErrorCode::bad_input, fmt::format("vLLM has no blocks of {} tokens", block),
              "block sizes: 1, 8, 16, 32, 64, 128, 256");
}

Result<Settings> settings_of(const Model& model, const Job& job, const Target& target) {
  Settings settings;
  const auto since = [&](std::string_view version) { return version_at_least(job.engine_version, version); };
  const Constant utilization = GW_TRY(constant(Engine::vllm, "gpu_memory_utilization", job.engine_version));
  settings.utilization = job.vllm.gpu_memory_utilization.value_or(utilization.expected);
  if (!(settings.utilization > 0) || settings.utilization > 1)
    return fail(ErrorCode::bad_input,
                fmt::format("gpu_memory_utilization is {}, not a share of one", settings.utilization));
  settings.v1 = since("0.8");
  settings.context = job.context_tokens.value_or(model.context_length > 0 ? model.context_length : 4096);
  if (job.prompt_tokens && !job.context_tokens) settings.context = *job.prompt_tokens + job.new_tokens.value_or(1);
  const bool large = settings.v1 && is_large_card(target);
  settings.max_sequences = job.vllm.max_sequences.value_or(large && since("0.8.5") ? 1024 : 256);
  const std::int64_t whole_prompts = std::max<std::int64_t>(std::min<std::int64_t>(settings.context, 32768), 2048);
  settings.batched_tokens = job.vllm.max_batched_tokens.value_or(!settings.v1 ? whole_prompts : large ? 8192 : 2048);
  settings.block = job.vllm.block_size.value_or(16);
  settings.graphs = !job.vllm.enforce_eager.value_or(false);
  settings.graphs_in_budget = since("0.21");
  if (settings.batched_tokens < 1 || settings.max_sequences < 1)
    return fail(ErrorCode::bad_input, "max_num_batched_tokens and max_num_seqs must be at least 1");
  GW_TRY(check_block(settings.block));
  return settings;
}

class Rank {
 public:
  Rank(const Model& model, const Job& job, const Target& target, const Settings& settings, std::size_t index)
      : model_(model), job_(job), target_(target), settings_(settings) {
    const auto ranks = static_cast<std::size_t>(std::max(job.tensor_parallel, 1));
    const auto stages = static_cast<std::size_t>(std::max(job.pipeline_parallel, 1));
    rank_.tensor_parallel = job.tensor_parallel;
    rank_.layers = pipeline_layers(model.layers.size(), stages, index / ranks);
    rank_.first_stage = index / ranks == 0;
    rank_.last_stage = index / ranks + 1 == stages;
    rank_.mxfp4_backend = job.vllm.mxfp4_backend;
    cache_ = vllm_cache(model, {.tokens = settings.context,
                                .max_batched_tokens = settings.batched_tokens,
                                .ranks = job.tensor_parallel,
                                .block_tokens = settings.block,
                                .hybrid_manager = job.vllm.hybrid_kv_manager,
                                .key = cache_type(job.key_type, model),
                                .value = cache_type(job.value_type ? job.value_type : job.key_type, model),
                                .layers = rank_.layers});
  }

  Result<GpuEstimate> build();
  Result<std::vector<Capacity>> capacities(const GpuEstimate& gpu) const;
  const VllmCache& cache() const { return cache_; }

 private:
  void add_weights(Instant& instant) const;
  Component profiled_activations(const Constant& sampler) const;
  Status add_overheads(Instant& instant) const;
  void add_vision(Instant& instant) const;
  void add_cache(Instant& instant) const;
  void set_usable(GpuEstimate& gpu, const Range& graphs) const;

  const Model& model_;
  const Job& job_;
  const Target& target_;
  const Settings& settings_;
  VllmRank rank_;
  VllmCache cache_;
};

void Rank::add_weights(Instant& instant) const {
  const VllmWeights weights = vllm_weights(model_, rank_);
  const std::string share = rank_.tensor_parallel > 1 ? fmt::format(" / tp {}", rank_.tensor_parallel) : "";
  instant.components.push_back(Component::exact(
      ComponentKind::weights, Meter::tensor, weights.tensors,
      fmt::format("tensors of blocks {}-{}{}; norms and routers whole", rank_.layers.first, rank_.layers.last, share),
      "vllm/model_executor/layers/linear.py, vocab_parallel_embedding.py"));
  const Bytes extra = weights.rounding + weights.rotary;
  instant.components.push_back({ComponentKind::weights, Meter::allocated, weights.rotary / 4, extra,
                                extra + weights.tensors.scaled(0.004),
                                fmt::format("merged matrices rounded to 2 MiB: {}, rotary tables {}",
                                            to_string(weights.rounding), to_string(weights.rotary)),
                                "CUDACachingAllocator.cpp; vllm rotary_embedding"});
  if (weights.padding > Bytes{})
    instant.components.push_back({ComponentKind::weights,
                                  Meter::allocated,
                                  {},
                                  weights.padding,
                                  weights.padding * 2,
                                  "MXFP4 experts padded for the kernel",
                                  "vllm/model_executor/layers/quantization/mxfp4.py"});
}

Component Rank::profiled_activations(const Constant& sampler) const {
  BlockContext context = block_context(model_);
  context.ranks = static_cast<double>(std::max(job_.tensor_parallel, 1));
  context.fp32_norm = false;
  LiveWidth widest;
  for (std::size_t i = rank_.layers.first; i < rank_.layers.last; ++i) {
    const LiveWidth width = live_width(model_.layers[i], context);
    if (width.expected > widest.expected) widest = width;
  }
  const auto element = static_cast<double>(activation_bytes(model_));
  const auto tokens = static_cast<double>(settings_.batched_tokens);
  const double forward = widest.expected * element * tokens;
  const double hidden = static_cast<double>(model_.hidden) * element * tokens;
  const auto logits = static_cast<double>(std::min(settings_.max_sequences, settings_.batched_tokens)) *
                      static_cast<double>(model_.vocabulary);
  const bool generates = model_.kind != model::ModelKind::encoder && model_.kind != model::ModelKind::dual_encoder &&
                         model_.kind != model::ModelKind::vision_encoder;
  const bool samples = generates && settings_.v1 && rank_.last_stage && model_.vocabulary > 0;
  const double low = std::max(0.85 * forward, samples ? hidden + sampler.low * logits : 0);
  const double expected = std::max(forward, samples ? hidden + sampler.expected * logits : 0);
  const double high = std::max(1.3 * widest.high * element * tokens, samples ? 2 * hidden + sampler.high * logits : 0);
  const std::string formula =
      expected > forward
          ? fmt::format("sampler: {} sequences x {} logits x {:.0f} B + {} tokens x {} hidden", settings_.max_sequences,
                        with_thousands(model_.vocabulary), sampler.expected, settings_.batched_tokens, model_.hidden)
          : fmt::format("forward pass: {} tokens x ({}) x {:.0f} B", settings_.batched_tokens, widest.formula, element);
  return ranged(ComponentKind::activations, Meter::allocated, low, expected, high, formula,
                "vllm/v1/worker/gpu_model_runner.py, profile_run; " + sampler.source);
}

// What NCCL and the all-reduce buffers take depends on the links between the boards, where these are known.
std::string_view overhead_of(const Job& job, const Target& target) {
  if (job.tensor_parallel < 2) return "non_torch_bytes";
  if (!target.hardware || target.hardware->vendor != "NVIDIA" || !target.hardware->link_gb_per_second)
    return "non_torch_tensor_parallel_bytes";
  constexpr double kSwitched = 400;  // GB/s; bridges have less
  return *target.hardware->link_gb_per_second >= kSwitched ? "non_torch_linked_bytes" : "non_torch_unlinked_bytes";
}

Status Rank::add_overheads(Instant& instant) const {
  const bool parallel = job_.tensor_parallel > 1;
  const std::string_view name = overhead_of(job_, target_);
  const Constant outside = GW_TRY(constant(Engine::vllm, name, job_.engine_version, target_.architecture));
  instant.components.push_back(ranged(parallel ? ComponentKind::communication : ComponentKind::runtime, Meter::device,
                                      outside,
                                      parallel ? "NCCL, all-reduce buffers, kernels" : "kernels and libraries"));
  return {};
}

// One profiling pass of the vision tower; its largest image is a setting that the model does not tell.
void Rank::add_vision(Instant& instant) const {
  if (!model_.vision) return;
  const auto element = static_cast<double>(activation_bytes(model_));
  const auto positions =
      static_cast<double>(std::max<std::int64_t>(model_.vision->positions, settings_.batched_tokens));
  const double width = 2 * static_cast<double>(model_.vision->feed_forward_width + 2 * model_.vision->hidden);
  instant.components.push_back(ranged(ComponentKind::vision, Meter::allocated, 0, positions * width * element,
                                      4 * positions * width * element + 2147483648.0,
                                      fmt::format("profiling of the vision tower with {:.0f} positions", positions),
                                      "vLLM logs: up to 6.9 GiB more with images of the largest size"));
}

void Rank::add_cache(Instant& instant) const {
  std::string blocks;
  for (const CacheGroup& group : cache_.groups)
    blocks += fmt::format("{}{} ({} layers) {}", blocks.empty() ? "" : " + ", group.what, group.layers,
                          with_thousands(group.blocks_per_sequence));
  const std::string formula = fmt::format("{} sequences x [{}] blocks x {} layers x ({})", job_.sequences, blocks,
                                          cache_.layers_per_group, cache_.page_formula);
  constexpr std::string_view kSource = "vllm/v1/core/kv_cache_utils.py";
  const Bytes attention = cache_.attention_bytes(job_.sequences), state = cache_.recurrent_bytes(job_.sequences);
  if (attention > Bytes{})
    instant.components.push_back(
        Component::exact(ComponentKind::kv_cache, Meter::tensor, attention, formula, std::string(kSource)));
  if (state > Bytes{})
    instant.components.push_back(
        Component::exact(ComponentKind::recurrent_state, Meter::tensor, state, formula, std::string(kSource)));
}

// Before 0.21 graphs are captured on top of the budget: they raise what the job may take by their own size.
void Rank::set_usable(GpuEstimate& gpu, const Range& graphs) const {
  const Bytes budget = target_.total.scaled(settings_.utilization);
  const Bytes room = target_.free - job_.reserve;
  const Bytes wanted = budget + (settings_.graphs_in_budget ? Bytes{} : graphs.expected);
  gpu.usable = std::min(wanted, room);
  // The start-up check of vllm/v1/worker/gpu_worker.py: less free than the budget ends the process. A share that was
  // asked for is refused; the default can be lowered.
  if (budget > room) gpu.at_best = job_.vllm.gpu_memory_utilization ? Verdict::no : Verdict::tight;
  if (job_.vllm.kv_budget &&
      cache_.attention_bytes(job_.sequences) + cache_.recurrent_bytes(job_.sequences) > *job_.vllm.kv_budget)
    gpu.at_best = Verdict::no;
  gpu.usable_formula = fmt::format("{:.3g} x {}{}{}", settings_.utilization, to_string(target_.total),
                                   settings_.graphs_in_budget ? "" : " + CUDA graphs on top",
                                   gpu.usable < wanted ? fmt::format(", but only {} are free", to_string(room)) : "");
}

Result<GpuEstimate> Rank::build() {
  GpuEstimate gpu;
  gpu.gpu = target_.name;
  gpu.meter = Meter::device;
  const Constant sampler = GW_TRY(constant(Engine::vllm, "sampler_bytes_per_logit", job_.engine_version));

  Instant load{"load", {}, "--quantization, --tensor-parallel-size, --pipeline-parallel-size"};
  add_weights(load);
  Instant serve{"serving", {}, "--max-model-len, --max-num-seqs, --kv-cache-dtype fp8, --gpu-memory-utilization"};
  add_weights(serve);
  add_cache(serve);
  serve.components.push_back(profiled_activations(sampler));
  add_vision(serve);
  for (Instant* instant : {&load, &serve}) GW_TRY(add_overheads(*instant));
  if (settings_.graphs) {
    const Constant graphs =
        GW_TRY(constant(Engine::vllm, "cuda_graphs_bytes", job_.engine_version, target_.architecture));
    serve.components.push_back(ranged(ComponentKind::graphs, Meter::device, graphs,
                                      settings_.graphs_in_budget ? "captured CUDA graphs, part of the budget"
                                                                 : "captured CUDA graphs, on top of the budget"));
  }
  set_usable(gpu, serve.total_of(ComponentKind::graphs));
  gpu.instants = {load, serve};
  return gpu;
}

// What is left for pages on this rank: usable less everything but the cache; or what a log printed.
Range cache_budget(const GpuEstimate& gpu, const Job& job) {
  if (job.vllm.kv_budget) return {*job.vllm.kv_budget, *job.vllm.kv_budget, *job.vllm.kv_budget};
  const Instant& serve = gpu.instants.back();
  const Range all = serve.total(), kv = serve.total_of(ComponentKind::kv_cache),
              state = serve.total_of(ComponentKind::recurrent_state);
  return {gpu.usable - (all.high - kv.high - state.high), gpu.usable - (all.expected - kv.expected - state.expected),
          gpu.usable - (all.low - kv.low - state.low)};
}

Result<std::vector<Capacity>> Rank::capacities(const GpuEstimate& gpu) const {
  const Range budget = cache_budget(gpu, job_);
  const Bytes block = cache_.block_bytes();
  const std::int64_t each = cache_.blocks_per_sequence();
  if (block <= Bytes{} || each <= 0) return std::vector<Capacity>{};
  const auto blocks = [&](Bytes bytes) { return std::max<std::int64_t>(bytes.count / block.count, 0); };
  Capacity count{
      "kv_cache_blocks",
      blocks(budget.low),
      blocks(budget.expected),
      blocks(budget.high),
      fmt::format("{} / ({} x {} layers)", to_string(budget.expected), to_string(cache_.page), cache_.layers_per_group),
      "vllm/v1/core/kv_cache_utils.py, get_num_blocks"};
  const bool uniform = cache_.groups.size() == 1 && !cache_.groups.front().recurrent;
  const auto tokens = [&](std::int64_t n) {
    if (uniform) return n * cache_.block_tokens;
    return static_cast<std::int64_t>(static_cast<double>(n) / static_cast<double>(each) *
                                     static_cast<double>(settings_.context));
  };
  Capacity cached{"kv_cache_tokens",
                  tokens(count.low),
                  tokens(count.expected),
                  tokens(count.high),
                  uniform ? fmt::format("blocks x {} tokens", cache_.block_tokens)
                          : fmt::format("concurrency x {} tokens", settings_.context),
                  "vllm/v1/core/kv_cache_utils.py"};
  Capacity concurrency{"max_concurrency",
                       count.low / each,
                       count.expected / each,
                       count.high / each,
                       fmt::format("blocks / {} blocks of one sequence of {} tokens", each, settings_.context),
                       "vllm/v1/core/kv_cache_utils.py, get_max_concurrency_for_kv_cache_config"};
  return std::vector<Capacity>{count, cached, concurrency};
}

class VllmEngine final : public EngineModel {
 public:
  Result<Estimate> estimate(const Model& model, const Job& job, const std::vector<Target>& targets) const override;
};

Status check(const Model& model, const Job& job) {
  const bool runs =
      model.family == "whisper" || (model.family == "bart" && !version_at_least(job.engine_version, "0.11"));
  if (model.kind == model::ModelKind::encoder_decoder && !runs)
    return fail(ErrorCode::unsupported, fmt::format("vllm does not run encoder-decoder models like {}", model.name));
  for (const model::Layer& layer : model.layers) {
    const std::int64_t heads = layer.attention.heads;
    if (heads > 0 && heads % job.tensor_parallel != 0)
      return fail(ErrorCode::bad_input,
                  fmt::format("{} attention heads cannot be divided by tensor parallel {}", heads, job.tensor_parallel),
                  "choose a divisor of the number of heads");
  }
  if (static_cast<std::size_t>(job.pipeline_parallel) > std::max<std::size_t>(model.layers.size(), 1))
    return fail(ErrorCode::bad_input, "there are more pipeline stages than layers");
  return {};
}

void add_notes(Estimate& answer, const Job& job, const Target& target, const Settings& settings) {
  answer.notes.push_back(fmt::format(
      "vLLM takes its whole budget, {:.3g} x {}{}, whatever the job needs: nvidia-smi will show that much.",
      settings.utilization, to_string(target.total), settings.graphs_in_budget ? "" : " and the CUDA graphs on top"));
  answer.notes.push_back(fmt::format("Profiled with max_num_batched_tokens {}, max_num_seqs {}, block {}.",
                                     settings.batched_tokens, settings.max_sequences, settings.block));
  const Bytes room = target.free - job.reserve;
  if (target.total.scaled(settings.utilization) > room && target.total > Bytes{}) {
    const double share =
        std::floor(100 * static_cast<double>(room.count) / static_cast<double>(target.total.count)) / 100;
    answer.notes.push_back(fmt::format(
        "vLLM refuses to start: it asks for {} and {} are free. Set --gpu-memory-utilization {:.2f}, which gives what "
        "is usable here.",
        to_string(target.total.scaled(settings.utilization)), to_string(room), std::max(share, 0.0)));
  }
}

void note_budget(Estimate& answer, const Job& job, const VllmCache& cache) {
  if (!job.vllm.kv_budget) return;
  const Bytes needed = cache.attention_bytes(job.sequences) + cache.recurrent_bytes(job.sequences);
  if (needed > *job.vllm.kv_budget)
    answer.notes.push_back(
        fmt::format("The cache needs {}, its budget is {}.", to_string(needed), to_string(*job.vllm.kv_budget)));
}

// Ranks of one pipeline stage on equal GPUs carry the same.
bool repeats_the_last(const Job& job, const std::vector<Target>& targets, std::size_t index) {
  const auto ranks = static_cast<std::size_t>(std::max(job.tensor_parallel, 1));
  if (index == 0 || index / ranks != (index - 1) / ranks) return false;
  const Target &target = targets[index], &last = targets[index - 1];
  return target.name == last.name && target.total == last.total && target.free == last.free;
}

Result<Estimate> VllmEngine::estimate(const Model& model, const Job& job, const std::vector<Target>& targets) const {
  GW_TRY(check(model, job));
  GW_TRY(check_trained_context(model, job, "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1"));
  const std::int64_t context = std::max(job.context_tokens.value_or(model.context_length),
                                        job.prompt_tokens.value_or(0) + job.new_tokens.value_or(0));
  GW_TRY(check_magnitude(model, std::max(context, job.vllm.max_batched_tokens.value_or(0)), job.sequences));
  if (job.tensor_parallel * job.pipeline_parallel < static_cast<int>(targets.size()))
    return fail(ErrorCode::bad_input,
                fmt::format("{} GPUs, but only {} ranks", targets.size(), job.tensor_parallel * job.pipeline_parallel),
                fmt::format("add --tensor-parallel {}", targets.size()));
  Estimate answer;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (repeats_the_last(job, targets, i)) {
      answer.per_gpu.push_back(answer.per_gpu.back());
      answer.per_gpu.back().rank = static_cast<int>(i);
      continue;
    }
    const Settings settings = GW_TRY(settings_of(model, job, targets[i]));
    Rank rank(model, job, targets[i], settings, i);
    answer.per_gpu.push_back(GW_TRY(rank.build()));
    answer.per_gpu.back().rank = static_cast<int>(i);
    auto capacities = GW_TRY(rank.capacities(answer.per_gpu.back()));
    // All ranks use the block count of the one with the fewest.
    if (answer.capacities.empty() || (!capacities.empty() && capacities[0].expected < answer.capacities[0].expected))
      answer.capacities = std::move(capacities);
    if (i == 0) add_notes(answer, job, targets[i], settings);
    if (i == 0) note_budget(answer, job, rank.cache());
  }
  return answer;
}

}  // namespace

const EngineModel& vllm_engine() {
  static const VllmEngine engine;
  return engine;
}

}  // namespace gpuwright::fit
