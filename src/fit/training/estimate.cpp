// From what a GPU holds to its instants. Which component is alive when:
//
//   instant          weights  gradients         states  activations                    logits  buffers
//   load             x
//   forward end      x        if accumulated    x       of all layers                  x       gathered layers
//   backward         x        growing           x       shrinking, + one layer's own           gathered, reduced
//   optimizer step   x        x                 x                                              fp32 shard, temporaries
//   all-gather       x                          x                                              gathered (sharded jobs)
//   evaluation       x                          x       of one layer                   x
//
// Backward is looked at where it starts (all activations, hardly a gradient) and where it ends (one layer's
// activations, all gradients); the larger is shown.
#include <fmt/format.h>

#include <algorithm>

#include "fit/training/activations.h"
#include "fit/training/loss.h"
#include "fit/training/overheads.h"
#include "fit/training/rank.h"
#include "fit/training/training.h"

namespace gpuwright::fit {
namespace training {
namespace {

Bytes bytes(double count) {
  return {static_cast<std::int64_t>(std::max(count, 0.0))};
}

// Which meter sees tensors first: the allocator's.
Component part(ComponentKind kind, double low, double expected, double high, std::string formula, std::string source) {
  return {kind, Meter::allocated, bytes(low), bytes(expected), bytes(high), std::move(formula), std::move(source)};
}
Component exact(ComponentKind kind, double count, std::string formula, std::string source) {
  return part(kind, count, count, count, std::move(formula), std::move(source));
}
Component from(ComponentKind kind, const BufferBytes& buffer) {
  return part(kind, buffer.low, buffer.expected, buffer.high, buffer.formula, buffer.source);
}

// Activations of all layers of a stage under the job's checkpointing.
struct Stack {
  double kept = 0;        // at the end of forward
  double kept_first = 0;  // of the first layer, when backward has reached it
  double live = 0;        // beside, while the largest layer's backward runs
  double one_layer = 0;   // what a step without backward holds
  double offloaded = 0;   // on the host
  std::string formula;
};

double kept_of(const LayerBytes& layer, Checkpointing mode) {
  if (mode == Checkpointing::none) return layer.saved;
  if (mode == Checkpointing::selective) return std::min(layer.selective, layer.saved);
  return layer.input;
}

Stack stack_of(const model::Model& model, const TrainingJob& job, const Stage& stage,
               const std::vector<Module>& adapted) {
  Stack stack;
  double largest_input = 0;
  for (std::size_t i = stage.first; i < stage.last; ++i) {
    const LayerBytes layer = layer_bytes(model, i, adapted, job);
    const double kept = kept_of(layer, job.checkpointing);
    stack.kept += kept;
    if (i == stage.first) stack.kept_first = kept;
    const bool recomputes = job.checkpointing != Checkpointing::none;
    stack.live = std::max(stack.live, layer.backward + (recomputes ? layer.saved - layer.shared_input : 0));
    stack.one_layer = std::max(stack.one_layer, layer.saved * 0.6);
    largest_input = std::max(largest_input, layer.input);
    if (i == stage.first)
      stack.formula =
          fmt::format("{} layers x {}", stage.last - stage.first,
                      job.checkpointing == Checkpointing::none        ? layer.formula
                      : job.checkpointing == Checkpointing::selective ? fmt::format("{:.0f} B kept", layer.selective)
                                                                      : fmt::format("{:.0f} B of inputs", layer.input));
  }
  stack.kept *= stage.in_flight;
  if (job.activation_offload || job.checkpointing == Checkpointing::offloaded) {
    const double stays = std::min(stack.kept, 2 * largest_input);  // the one that leaves and the one that comes back
    stack.offloaded = stack.kept - stays;
    stack.kept = stays;
    stack.kept_first = stays;
  }
  return stack;
}

// ---------------------------------------------------------------- one GPU

class Rank {
 public:
  Rank(const model::Model& model, const TrainingJob& job, const std::vector<Module>& adapted, int stage)
      : model_(model),
        job_(job),
        stage_(stage_of(model, job, stage)),
        held_(holdings_of(model, job, stage_, adapted)),
        stack_(stack_of(model, job, stage_, adapted)),
        shares_(shard_shares(job)) {}

  Result<std::vector<Instant>> instants(const Target& target) const {
    std::vector<Instant> all;
    all.push_back(load());
    all.push_back(GW_TRY(forward_end()));
    all.push_back(GW_TRY(backward()));
    all.push_back(GW_TRY(step()));
    if (job_.sharding.kind != Sharding::none) all.push_back(GW_TRY(all_gather()));
    all.push_back(GW_TRY(evaluation()));
    const std::vector<Component> outside = GW_TRY(outside_components(job_, target));
    for (Instant& instant : all) {
      for (const Component& component : outside)
        if (component.first_seen_by <= Meter::allocated && instant.name != "load")
          instant.components.push_back(component);
      instant.components.push_back(GW_TRY(allocator_slack(job_, instant, tokens_at(instant))));
      for (const Component& component : outside)
        if (component.first_seen_by > Meter::allocated) instant.components.push_back(component);
      std::erase_if(instant.components, [](const Component& component) { return component.high.count == 0; });
    }
    return all;
  }

  std::vector<Component> host() const {
    std::vector<Component> parts;
    const auto add = [&](ComponentKind kind, double count, std::string formula) {
      if (count > 0)
        parts.push_back({kind, Meter::tensor, bytes(count), bytes(count), bytes(count), std::move(formula),
                         "offloaded to the host"});
    };
    if (job_.sharding.offload_optimizer)
      add(ComponentKind::optimizer_state, (held_.states + held_.master + held_.gradients) / shares_.states,
          "states, master weights and gradients of this rank");
    if (job_.sharding.offload_parameters)
      add(ComponentKind::weights, (held_.base_bytes + held_.adapter_bytes) / shares_.weights, "this rank's shard");
    add(ComponentKind::activations, stack_.offloaded, "inputs of the checkpointed layers");
    return parts;
  }

 private:
  double tokens_at(const Instant& instant) const {
    return instant.name == "forward end" || instant.name == "backward" ? shares_of(job_).tokens : 0;
  }

  bool accumulates() const { return job_.gradient_accumulation > 1 || job_.engine == TrainingEngine::megatron; }

  void add_weights(Instant& instant, bool while_running) const {
    const bool loads = instant.name == "load";
    // transformers does not open zero.Init for a base that bitsandbytes packs while it loads (modeling_utils.py,
    // get_init_context): every GPU first holds it whole, and what is offloaded leaves afterwards.
    const bool packed = job_.method == TrainingMethod::qlora && job_.sharding.kind == Sharding::zero3;
    const bool whole_at_load = loads && (packed || !job_.sharding.partitioned_at_load);
    const double share = whole_at_load ? 1 : shares_.weights;
    const bool on_host = job_.sharding.offload_parameters && !(loads && packed);
    const char* source = "the model's tensors";
    if (!on_host)
      instant.components.push_back(
          exact(ComponentKind::weights, (held_.base_bytes + held_.trained_copies) / share,
                fmt::format("{:.0f} parameters, {:.3g} B each{}", held_.base_parameters,
                            held_.base_parameters > 0 ? held_.base_bytes / held_.base_parameters : 0,
                            share > 1 ? fmt::format(", / {:.0f} ranks", share) : std::string()),
                source));
    if (while_running && held_.cast_copies > 0)
      instant.components.push_back(exact(ComponentKind::weights, held_.cast_copies / share,
                                         "16-bit copies of fp32 weights under autocast",
                                         "torch.autocast weight cache; transformers docs, 6 B a parameter"));
    if (held_.adapter_bytes > 0 && !on_host)
      instant.components.push_back(
          exact(ComponentKind::adapters, held_.adapter_bytes / share,
                fmt::format("rank {}: {:.0f} parameters", job_.lora.rank, held_.adapter_parameters),
                "LoRA, arXiv 2106.09685: r x (d_in + d_out) a module"));
  }

  void add_states(Instant& instant) const {
    if (job_.sharding.offload_optimizer || job_.sharding.offload_parameters) return;
    if (held_.master > 0)
      instant.components.push_back(exact(ComponentKind::master_weights, held_.master / shares_.states,
                                         "4 B a trained parameter", "mixed precision training, arXiv 1710.03740"));
    instant.components.push_back(
        exact(ComponentKind::optimizer_state, held_.states / shares_.states,
              fmt::format("{:.0f} trained parameters x {:.3g} B{}", held_.units.trained_parameters,
                          held_.units.trained_parameters > 0 ? held_.states / held_.units.trained_parameters : 0,
                          shares_.states > 1 ? fmt::format(" / {:.0f} ranks", shares_.states) : std::string()),
              "states of the optimizer, recipe.h"));
  }

  // Offloaded optimizers get the gradients as soon as these are reduced.
  bool gradients_on_host() const {
    return (job_.sharding.offload_optimizer && job_.sharding.kind != Sharding::none) ||
           job_.sharding.offload_parameters;
  }

  void add_gradients(Instant& instant, double count, std::string formula) const {
    if (count > 0 && !gradients_on_host())
      instant.components.push_back(part(ComponentKind::gradients, 0.95 * count, count, count, std::move(formula),
                                        "the type of the trained parameter, recipe.h"));
  }

  double all_gradients() const {
    if (gradients_on_host()) return 0;
    if (job_.optimizer_in_backward)
      return held_.units.trained_parameters > 0
                 ? held_.gradients / held_.units.trained_parameters * held_.largest_trained
                 : 0;
    return held_.gradients / shares_.gradients;
  }

  Instant begin(std::string name, std::string knob, bool while_running) const {
    Instant instant;
    instant.name = std::move(name);
    instant.knob = std::move(knob);
    add_weights(instant, while_running);
    return instant;
  }

  Instant load() const { return begin("load", "a quantised base, or more ranks to shard over", false); }

  double spread() const { return approximate() ? 0.25 : 0.08; }
  // Recurrent layers and experts are counted by rule of thumb.
  bool approximate() const {
    return std::any_of(model_.layers.begin(), model_.layers.end(), [](const model::Layer& layer) {
      return layer.recurrent.kind != model::RecurrentKind::none || layer.feed_forward.experts > 0;
    });
  }

  void add_activations(Instant& instant, double count, std::string formula) const {
    instant.components.push_back(part(ComponentKind::activations, count * (1 - spread()), count, count * (1 + spread()),
                                      std::move(formula), "derivatives of each operation, activations.h"));
  }

  Result<Instant> forward_end() const {
    Instant instant = begin("forward end", "a smaller micro-batch, a chunked cross-entropy, checkpointing", true);
    add_states(instant);
    if (accumulates())
      add_gradients(instant, all_gradients(), "kept from the micro-batch before");
    else if (job_.chunked_cross_entropy && stage_.is_last && job_.engine != TrainingEngine::gpuwright)
      add_gradients(instant, held_.head_gradient / shares_.gradients, "of the head, which the chunks add up");
    const double head = stage_.is_last ? head_bytes(model_, job_) : 0;
    add_activations(instant, stack_.kept + head, stack_.formula);
    if (stage_.is_last) {
      const LossBytes loss = GW_TRY(loss_bytes(model_, job_));
      instant.components.push_back(
          part(ComponentKind::logits, loss.low, loss.expected, loss.high, loss.formula, loss.source));
    }
    instant.components.push_back(
        from(ComponentKind::sharding_buffers, GW_TRY(running_buffers(job_, held_.units, false))));
    return instant;
  }

  Result<Instant> backward() const {
    Instant instant = begin("backward", "a smaller micro-batch, full checkpointing", true);
    add_states(instant);
    const double gradients = all_gradients();
    const double at_start = accumulates() ? gradients : std::min(gradients, held_.head_gradient / shares_.gradients);
    // In the last layer to be reached its own gradients are half there, the embedding's not yet.
    const double own = held_.units.largest_layer_gradient / 2 + held_.embedding_gradient;
    const double at_end = accumulates() ? gradients : std::max(gradients - own / shares_.gradients, at_start);
    const double start = stack_.kept + at_start, end = stack_.kept_first + at_end;
    const bool early = start >= end;
    add_gradients(instant, early ? at_start : at_end, early ? "where backward starts" : "where backward ends");
    add_activations(instant, (early ? stack_.kept : stack_.kept_first) + stack_.live,
                    fmt::format("{} + {:.0f} B while one layer's backward runs",
                                early ? stack_.formula : std::string("the last layer's"), stack_.live));
    if (held_.dequantised > 0)
      instant.components.push_back(exact(ComponentKind::dequantised_weights, held_.dequantised,
                                         "the largest quantised linear x 2 B",
                                         "bitsandbytes MatMul4Bit.backward dequantises the whole matrix"));
    instant.components.push_back(
        from(ComponentKind::sharding_buffers, GW_TRY(running_buffers(job_, held_.units, true))));
    return instant;
  }

  Result<Instant> step() const {
    Instant instant = begin("optimizer step", "a fused, 8-bit or paged optimizer", false);
    add_states(instant);
    add_gradients(instant, all_gradients(), "of every trained parameter");
    const bool on_host = job_.sharding.offload_optimizer || job_.sharding.offload_parameters;
    const StepTemporaries& t = held_.temporaries;
    if (!on_host)
      instant.components.push_back(part(ComponentKind::optimizer_state, t.low_of_all / shares_.states,
                                        t.of_all / shares_.states + t.of_largest / shares_.states,
                                        (t.high_of_all + t.of_largest) / shares_.states, "temporaries of the step",
                                        "torch.optim adamw: _multi_tensor_adamw; transformers optimization.py"));
    instant.components.push_back(from(ComponentKind::sharding_buffers, GW_TRY(step_buffers(job_, held_.units))));
    return instant;
  }

  Result<Instant> all_gather() const {
    Instant instant = begin("all-gather", "smaller buckets, fewer live parameters", false);
    add_states(instant);
    instant.components.push_back(from(ComponentKind::sharding_buffers, GW_TRY(gather_buffers(job_, held_.units))));
    return instant;
  }

  Result<Instant> evaluation() const {
    Instant instant = begin("evaluation", "a smaller evaluation batch", true);
    add_states(instant);
    add_activations(instant, stack_.one_layer, "one layer without backward");
    if (stage_.is_last) {
      const LossBytes logits = GW_TRY(evaluation_logits(model_, job_));
      instant.components.push_back(
          part(ComponentKind::logits, logits.low, logits.expected, logits.high, logits.formula, logits.source));
    }
    instant.components.push_back(
        from(ComponentKind::sharding_buffers, GW_TRY(running_buffers(job_, held_.units, false))));
    return instant;
  }

  const model::Model& model_;
  const TrainingJob& job_;
  Stage stage_;
  Holdings held_;
  Stack stack_;
  ShardShares shares_;
};

// ---------------------------------------------------------------- the job

constexpr std::int64_t kMostTokens = std::int64_t{1} << 26;  // of one micro-batch
constexpr std::int64_t kMostRanks = 1 << 17;

Status check_count(std::int64_t value, std::int64_t most, std::string_view what) {
  if (value >= 1 && value <= most) return {};
  return fail(ErrorCode::bad_input, fmt::format("{} must be between 1 and {}, not {}", what, most, value));
}

Status check(const model::Model& model, const TrainingJob& job, const std::vector<Target>& targets) {
  if (targets.empty()) return fail(ErrorCode::bad_input, "no GPU was named", "name one with --gpu");
  if (model.layers.empty())
    return fail(ErrorCode::unsupported, fmt::format("{}: the layers of the model are not known", model.name),
                "give the folder with its config.json");
  GW_TRY(check_count(job.micro_batch, 1 << 20, "the micro-batch"));
  GW_TRY(check_count(job.sequence, kMostTokens, "the sequence"));
  if (job.micro_batch * job.sequence > kMostTokens)
    return fail(ErrorCode::bad_input,
                fmt::format("{} x {} tokens are more than a GPU can hold at once", job.micro_batch, job.sequence));
  GW_TRY(check_count(job.gradient_accumulation, 1 << 20, "gradient accumulation"));
  GW_TRY(check_count(job.lora.rank, 1 << 16, "the rank of the adapters"));
  GW_TRY(check_count(job.data_parallel, kMostRanks, "data parallelism"));
  GW_TRY(check_count(job.tensor_parallel, 1024, "tensor parallelism"));
  GW_TRY(check_count(job.pipeline_parallel, std::ssize(model.layers), "pipeline parallelism"));
  GW_TRY(check_count(job.context_parallel, 1024, "context parallelism"));
  if (job.pipeline_stage < 0 || job.pipeline_stage >= job.pipeline_parallel)
    return fail(ErrorCode::bad_input, fmt::format("there is no pipeline stage {}", job.pipeline_stage));
  if (job.reserve < Bytes{}) return fail(ErrorCode::bad_input, "the reserve is negative");
  const std::int64_t wanted =
      std::int64_t{job.data_parallel} * job.tensor_parallel * job.pipeline_parallel * job.context_parallel;
  if (targets.size() > 1 && wanted != std::ssize(targets))
    return fail(ErrorCode::bad_input,
                fmt::format("data {} x tensor {} x pipeline {} x context {} parallel needs {} GPUs, {} given",
                            job.data_parallel, job.tensor_parallel, job.pipeline_parallel, job.context_parallel, wanted,
                            targets.size()),
                fmt::format("write --gpu NAMEx{}", wanted));
  const bool packed = std::any_of(model.tensors.begin(), model.tensors.end(), [](const model::Tensor& tensor) {
    return tensor.rows > 1 && model::bits_per_weight(tensor.dtype) < 16;
  });
  if (packed && job.method == TrainingMethod::full)
    return fail(ErrorCode::bad_input, fmt::format("{} weights cannot be trained as they are", model.weight_format),
                "take the 16-bit model, or --train qlora");
  return {};
}

// The meter that people read with this engine.
Meter meter_of(TrainingEngine engine) {
  switch (engine) {
    case TrainingEngine::litgpt:
    case TrainingEngine::gpuwright:
    case TrainingEngine::torchtune:
      return Meter::allocated;
    case TrainingEngine::torchtitan:
      return Meter::reserved;
    default:
      return Meter::device;
  }
}

void judge(GpuEstimate& gpu) {
  Bytes expected, high;
  for (std::size_t i = 0; i < gpu.instants.size(); ++i) {
    const Range total = gpu.instants[i].total();
    if (total.expected > expected) expected = total.expected, gpu.binding = i;
    high = std::max(high, total.high);
  }
  gpu.verdict = expected > gpu.usable ? Verdict::no : high > gpu.usable ? Verdict::tight : Verdict::fits;
}

int stage_of_target(const TrainingJob& job, std::size_t index, std::size_t targets) {
  if (targets == 1) return job.pipeline_stage;
  return static_cast<int>(index * static_cast<std::size_t>(job.pipeline_parallel) / targets);
}

void add_notes(const model::Model& model, const TrainingJob& job, Estimate& answer) {
  if (job.varying_lengths) answer.notes.emplace_back("sequence is the longest sample; the rest is shorter");
  for (const model::Layer& layer : model.layers) {
    if (layer.recurrent.kind == model::RecurrentKind::none) continue;
    answer.notes.emplace_back("activations of recurrent layers are counted as eight inner widths, +-25 %");
    break;
  }
  for (const model::Layer& layer : model.layers) {
    if (layer.feed_forward.experts == 0) continue;
    answer.notes.emplace_back("tokens are taken to spread evenly over the experts; an imbalance takes more");
    break;
  }
}

}  // namespace
}  // namespace training

Result<Estimate> estimate_training(const model::Model& model, const TrainingJob& job,
                                   const std::vector<Target>& targets) {
  GW_TRY(training::check(model, job, targets));
  std::vector<training::Module> adapted;
  if (job.method != TrainingMethod::full) adapted = GW_TRY(training::adapted_modules(model, job));
  Estimate answer;
  std::vector<Component> host;
  int known_stage = -1;  // whose instants the GPU before has, too
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const int stage = training::stage_of_target(job, i, targets.size());
    GpuEstimate gpu;
    gpu.gpu = targets[i].name;
    gpu.rank = static_cast<int>(i);
    gpu.usable = std::max(targets[i].free - job.reserve, Bytes{});
    gpu.usable_formula = fmt::format("{} free - {} reserved", to_string(targets[i].free), to_string(job.reserve));
    gpu.meter = training::meter_of(job.engine);
    if (stage == known_stage && targets[i].architecture == targets[i - 1].architecture) {
      gpu.instants = answer.per_gpu.back().instants;
    } else {
      const training::Rank rank(model, job, adapted, stage);
      gpu.instants = GW_TRY(rank.instants(targets[i]));
      host = rank.host();
      known_stage = stage;
    }
    training::judge(gpu);
    answer.per_gpu.push_back(std::move(gpu));
    answer.host.insert(answer.host.end(), host.begin(), host.end());
  }
  training::add_notes(model, job, answer);
  return answer;
}

}  // namespace gpuwright::fit
