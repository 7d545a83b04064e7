// llama.cpp's memory: weights where llama_model::load_tensors puts them, a cache and recurrent states that are
// allocated whole at the start, and one compute buffer a device, found by replaying the allocation of the largest graph
// (llama_cpp_allocator.h). Everything but the CUDA context is therefore derived; nothing grows while it runs, except
// the pool of the CUDA backend, which is part of the runtime's range.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "fit/engines/engines.h"
#include "fit/engines/llama_cpp_graph.h"
#include "fit/engines/llama_cpp_placement.h"
#include "fit/engines/llama_cpp_settings.h"
#include "fit/kv_cache.h"

namespace gpuwright::fit {
namespace {

constexpr std::string_view kCacheSource = "llama.cpp src/llama-kv-cache.cpp, src/llama-kv-cache-iswa.cpp";
constexpr std::string_view kStateSource = "llama.cpp src/llama-memory-recurrent.cpp";
constexpr std::string_view kWeightSource = "llama.cpp src/llama-model.cpp (load_tensors)";
constexpr std::string_view kGraphSource =
    "llama.cpp src/llama-graph.cpp and ggml/src/ggml-alloc.c: the largest graph, replayed";
constexpr std::string_view kOutputSource = "llama.cpp src/llama-context.cpp (output_reserve)";

Component whole(ComponentKind kind, Bytes bytes, std::string formula, std::string_view source) {
  return Component::exact(kind, Meter::tensor, bytes, std::move(formula), std::string(source));
}

// Of models that were converted to a GGUF format here, quantize.cpp has told it.
bool says_where_the_tower_is(const model::Model& model) {
  return std::any_of(model.assumptions.begin(), model.assumptions.end(),
                     [](const std::string& text) { return text.find("(mmproj)") != std::string::npos; });
}

class LlamaEstimator {
 public:
  LlamaEstimator(const model::Model& model, const Job& job, const std::vector<Target>& targets, LlamaSettings settings,
                 LlamaPlacement placement)
      : model_(model),
        job_(job),
        targets_(targets),
        settings_(std::move(settings)),
        placement_(std::move(placement)),
        graph_(reserve_graph(model, plan())) {}

  Result<Estimate> estimate() {
    Estimate answer;
    for (std::size_t gpu = 0; gpu < targets_.size(); ++gpu) answer.per_gpu.push_back(GW_TRY(on_gpu(gpu)));
    answer.host = on_host();
    answer.notes = settings_.notes;
    if (placement_.duplicated_head.count > 0)
      answer.notes.push_back(fmt::format("the output head is tied to the embedding: the GPU holds {} of it again",
                                         to_string(placement_.duplicated_head)));
    const std::int64_t per_sequence = settings_.context / settings_.streams;
    if (settings_.sequences > 1)
      answer.notes.push_back(settings_.streams > 1
                                 ? fmt::format("{} sequences of {} tokens each: {} tokens of cache together",
                                               settings_.sequences, with_thousands(per_sequence),
                                               with_thousands(settings_.context))
                                 : fmt::format("{} sequences share one cache of {} tokens", settings_.sequences,
                                               with_thousands(settings_.context)));
    if (model_.context_length > 0 && per_sequence > pad_to(model_.context_length, 256))
      answer.notes.push_back(fmt::format("{} tokens a sequence are more than the {} the model was trained on",
                                         with_thousands(per_sequence), with_thousands(model_.context_length)));
    if (model_.vision && !job_.llama.projector && !says_where_the_tower_is(model_))
      answer.notes.push_back("the vision tower (--mmproj) is not counted: name its bytes to include it");
    return answer;
  }

 private:
  // ------------------------------------------------------------ the graph

  GraphPlan plan() const {
    GraphPlan plan;
    plan.tokens = plan.outputs = settings_.ubatch;
    plan.sequences = std::min(settings_.sequences, settings_.ubatch);
    plan.full_cells = settings_.cache ? settings_.full_cells : settings_.ubatch;
    plan.swa_cells = settings_.swa_cells;
    plan.flash_attention = settings_.flash_attention;
    plan.quantized_cache = model::traits(settings_.key_type).block_elements > 1;
    plan.layer_buffer = placement_.layer_buffer;
    plan.output_buffer = placement_.output_buffer;
    if (job_.llama.cpu_moe_layers > 0) {
      plan.host_experts = expert_weights(model_);
      for (std::size_t il = 0; il < plan.host_experts.size(); ++il)
        if (static_cast<std::int64_t>(il) >= job_.llama.cpu_moe_layers) plan.host_experts[il] = {};
    }
    plan.devices = static_cast<int>(targets_.size());
    plan.copies = pipelined() ? 4 : 1;
    plan.half_mask = settings_.half_mask;
    plan.fused_glu = settings_.fused_glu;
    plan.both_embeddings = settings_.both_embeddings;
    plan.rotated_cache = settings_.rotated_cache;
    plan.fused_delta_net = settings_.fused_delta_net;
    plan.old_qkv_copies = settings_.old_qkv_copies;
    plan.fused_gate_up = std::any_of(model_.tensors.begin(), model_.tensors.end(), [](const model::Tensor& tensor) {
      return tensor.role == model::TensorRole::feed_forward && tensor.name.find("gate_up_proj") != std::string::npos;
    });
    plan.state_snapshots = settings_.state_copies;
    return plan;
  }

  // llama_context: several GPUs, everything offloaded, by layers, and no tensor moved away (GGML_SCHED_MAX_COPIES = 4).
  bool pipelined() const {
    return targets_.size() > 1 && settings_.gpu_layers > static_cast<std::int64_t>(model_.layers.size()) &&
           !job_.llama.split_by_rows && !job_.llama.kv_on_host && job_.llama.cpu_moe_layers == 0;
  }

  // ------------------------------------------------------------ one GPU

  int cache_buffer(std::size_t layer) const { return job_.llama.kv_on_host ? 0 : placement_.layer_buffer[layer]; }

  Bytes cache_on(int buffer, bool sliding) const {
    Bytes total;
    for (std::size_t il = 0; il < model_.layers.size(); ++il) {
      const model::Attention& attention = model_.layers[il].attention;
      if (cache_buffer(il) == buffer && slides(settings_, attention) == sliding)
        total += layer_cache_bytes(settings_, attention);
    }
    return total;
  }

  Bytes states_on(int buffer) const {
    Bytes total;
    for (std::size_t il = 0; il < model_.layers.size(); ++il)
      if (cache_buffer(il) == buffer) total += layer_state_bytes(settings_, model_.layers[il].recurrent);
    return total;
  }

  std::string cache_formula(int buffer, bool sliding) const {
    std::int64_t layers = 0;
    const model::Attention* example = nullptr;
    for (std::size_t il = 0; il < model_.layers.size(); ++il) {
      const model::Attention& attention = model_.layers[il].attention;
      if (cache_buffer(il) != buffer || slides(settings_, attention) != sliding ||
          layer_cache_bytes(settings_, attention).count == 0)
        continue;
      ++layers;
      example = &attention;
    }
    if (example == nullptr) return {};
    const std::int64_t cells = cells_of(settings_, *example);
    const std::string width =
        example->kind == model::AttentionKind::latent
            ? fmt::format("latent {} + {}", example->kv_lora_rank, example->rope_dim)
            : fmt::format("{} kv heads x ({} + {})", example->kv_heads, example->key_dim, example->value_dim);
    const std::string types =
        settings_.key_type == settings_.value_type
            ? std::string(model::traits(settings_.key_type).name)
            : fmt::format("{}/{}", model::traits(settings_.key_type).name, model::traits(settings_.value_type).name);
    std::string text = fmt::format("{} {}layers x {} x {} x {} cells", layers, sliding ? "sliding " : "", width, types,
                                   with_thousands(cells));
    if (settings_.streams > 1) text += fmt::format(" x {} sequences", settings_.streams);
    if (sliding) text += fmt::format(" (window {} + ubatch {}, padded to 256)", settings_.swa_window, settings_.ubatch);
    return text;
  }

  std::string state_formula() const {
    return fmt::format(
        "convolution and state of each recurrent layer in f32 x {} sequences{}", settings_.sequences,
        settings_.state_copies > 1 ? fmt::format(" x {} copies for rollback", settings_.state_copies) : std::string());
  }

  std::vector<Component> memory_of(int buffer) const {
    std::vector<Component> parts;
    for (const bool sliding : {false, true})
      if (const Bytes bytes = cache_on(buffer, sliding); bytes.count > 0)
        parts.push_back(whole(ComponentKind::kv_cache, bytes, cache_formula(buffer, sliding), kCacheSource));
    if (const Bytes bytes = states_on(buffer); bytes.count > 0)
      parts.push_back(whole(ComponentKind::recurrent_state, bytes, state_formula(), kStateSource));
    return parts;
  }

  Component weights_of(int buffer) const {
    const auto count = std::count(placement_.layer_buffer.begin(), placement_.layer_buffer.end(), buffer);
    std::string formula = buffer == 0 ? "token embedding" : fmt::format("tensors of {} layers", count);
    if (buffer == 0 && count > 0) formula += fmt::format(", {} layers", count);
    if (buffer == 0 && job_.llama.cpu_moe_layers > 0)
      formula += fmt::format(", routed experts of the first {} layers", job_.llama.cpu_moe_layers);
    if (buffer > 0 && placement_.output_buffer == buffer) formula += ", output norm and head";
    return whole(ComponentKind::weights, placement_.weights[static_cast<std::size_t>(buffer)], std::move(formula),
                 kWeightSource);
  }

  // Matrices that stay on the host are still multiplied on the first GPU for batches of 32 tokens and more: the matrix
  // is copied into the compute buffer beside its input and output (op_offload in ggml-backend.cpp).
  struct HostOperation {
    Bytes bytes;
    std::string formula;
  };
  HostOperation largest_host_operation() const {
    constexpr std::int64_t kOffloadBatch = 32;
    HostOperation largest;
    if (settings_.ubatch < kOffloadBatch) return largest;
    for (const model::Tensor& tensor : model_.tensors) {
      if (!multiplied_from_host(tensor)) continue;
      const std::int64_t used = tensor.role == model::TensorRole::expert ? experts_used(tensor.layer) : 1;
      const Bytes flow{4 * settings_.ubatch * (tensor.columns + used * tensor.rows)};
      if (tensor.bytes + flow <= largest.bytes) continue;
      largest = {tensor.bytes + flow, fmt::format("copy of {} ({}) + its input and output ({})", tensor.name,
                                                  to_string(tensor.bytes), to_string(flow))};
    }
    return largest;
  }

  bool multiplied_from_host(const model::Tensor& tensor) const {
    using model::TensorRole;
    if (tensor.rows <= 1) return false;
    if (tensor.role == TensorRole::output_head) return placement_.output_buffer == 0;
    const bool known = tensor.layer >= 0 && static_cast<std::size_t>(tensor.layer) < placement_.layer_buffer.size();
    if (!known || placement_.layer_buffer[static_cast<std::size_t>(tensor.layer)] != 0) return false;
    return tensor.role == TensorRole::attention || tensor.role == TensorRole::feed_forward ||
           tensor.role == TensorRole::expert || tensor.role == TensorRole::shared_expert;
  }

  std::int64_t experts_used(std::int32_t layer) const {
    return std::max<std::int64_t>(1, model_.layers[static_cast<std::size_t>(layer)].feed_forward.experts_per_token);
  }

  Component compute_of(int buffer) const {
    const ComputeGraph::Reserved& reserved = graph_[static_cast<std::size_t>(buffer)];
    const HostOperation offloaded = buffer == 1 ? largest_host_operation() : HostOperation{};
    if (offloaded.bytes.count > reserved.bytes)
      return whole(ComponentKind::compute_buffer, offloaded.bytes, offloaded.formula, kGraphSource);
    return whole(ComponentKind::compute_buffer, Bytes{reserved.bytes}, reserved.live, kGraphSource);
  }

  Result<Component> runtime_of(const Target& target) const {
    const Constant context = GW_TRY(constant(job_.engine, "runtime_bytes", {}, target.architecture));
    return Component{ComponentKind::runtime,
                     Meter::device,
                     Bytes{static_cast<std::int64_t>(context.low)},
                     Bytes{static_cast<std::int64_t>(context.expected)},
                     Bytes{static_cast<std::int64_t>(context.high)},
                     "CUDA context, kernels, cuBLAS and the backend's pool",
                     context.source};
  }

  Result<std::optional<Component>> projector() const {
    if (placement_.projector.count == 0) return std::optional<Component>{};
    const Constant share = GW_TRY(constant(job_.engine, "projector_compute_ratio"));
    const Bytes weights = placement_.projector;
    return std::optional<Component>(Component{ComponentKind::vision, Meter::tensor, weights.scaled(1 + share.low),
                                              weights.scaled(1 + share.expected), weights.scaled(1 + share.high),
                                              "mmproj weights and their compute buffer", share.source});
  }

  Result<GpuEstimate> on_gpu(std::size_t gpu) const {
    const int buffer = static_cast<int>(gpu) + 1;
    const Target& target = targets_[gpu];
    GpuEstimate answer;
    answer.gpu = target.name;
    answer.rank = static_cast<int>(gpu);
    answer.usable = target.free - job_.reserve;
    answer.usable_formula = job_.reserve.count > 0
                                ? fmt::format("{} free - {} reserved", to_string(target.free), to_string(job_.reserve))
                                : fmt::format("{} free", to_string(target.free));
    Instant load{"load", {weights_of(buffer), GW_TRY(runtime_of(target))}, "--n-gpu-layers, --n-cpu-moe"};
    Instant run{"prefill", load.components, knob_of(buffer)};
    for (Component& part : memory_of(buffer)) run.components.push_back(std::move(part));
    run.components.push_back(compute_of(buffer));
    if (gpu == 0)
      if (auto vision = GW_TRY(projector())) run.components.push_back(std::move(*vision));
    if (buffer == placement_.output_buffer)
      for (Component& part : draft()) run.components.push_back(std::move(part));
    Instant decode = run;
    decode.name = "decode";
    answer.instants = {std::move(load), std::move(run), std::move(decode)};
    return answer;
  }

  // Multi-token prediction runs in a context of its own: the cache of its layers and a second compute buffer.
  std::vector<Component> draft() const {
    if (job_.llama.speculative_tokens == 0 || model_.multi_token_prediction_layers == 0) return {};
    model::Model drafter;
    drafter.family = model_.family;
    drafter.hidden = model_.hidden;
    drafter.vocabulary = model_.vocabulary;
    const auto attending = std::find_if(model_.layers.rbegin(), model_.layers.rend(), [](const model::Layer& layer) {
      return layer.attention.kind != model::AttentionKind::none;
    });
    if (attending == model_.layers.rend()) return {};
    drafter.layers.assign(static_cast<std::size_t>(model_.multi_token_prediction_layers), *attending);
    GraphPlan its_plan = plan();
    its_plan.layer_buffer.assign(drafter.layers.size(), 1);
    its_plan.output_buffer = its_plan.devices = its_plan.copies = 1;
    const ComputeGraph::Reserved reserved = reserve_graph(drafter, its_plan)[1];
    const Bytes cache = layer_cache_bytes(settings_, attending->attention) * model_.multi_token_prediction_layers;
    return {
        whole(ComponentKind::kv_cache, cache,
              fmt::format("{} multi-token prediction layers", model_.multi_token_prediction_layers), kCacheSource),
        whole(ComponentKind::compute_buffer, Bytes{reserved.bytes}, "draft context: " + reserved.live, kGraphSource)};
  }

  std::string knob_of(int buffer) const {
    const Bytes cache = cache_on(buffer, false) + cache_on(buffer, true);
    const Bytes compute{graph_[static_cast<std::size_t>(buffer)].bytes};
    const Bytes weights = placement_.weights[static_cast<std::size_t>(buffer)];
    if (cache > weights) return "--ctx-size, --cache-type-k, --cache-type-v, --parallel";
    if (compute > weights) return settings_.flash_attention ? "--ubatch-size" : "--flash-attn on, --ubatch-size";
    return "--n-gpu-layers, --n-cpu-moe, a smaller quantisation, --ctx-size";
  }

  // ------------------------------------------------------------ the host

  std::vector<Component> on_host() const {
    std::vector<Component> parts = {weights_of(0)};
    for (Component& part : memory_of(0)) parts.push_back(std::move(part));
    parts.push_back(compute_of(0));
    const Bytes output{4 * model_.vocabulary * settings_.sequences};
    if (model_.kind != model::ModelKind::encoder)
      parts.push_back(
          whole(ComponentKind::output_buffer, output,
                fmt::format("{} logits x {} sequences x 4 B", with_thousands(model_.vocabulary), settings_.sequences),
                kOutputSource));
    return parts;
  }

  const model::Model& model_;
  const Job& job_;
  const std::vector<Target>& targets_;
  LlamaSettings settings_;
  LlamaPlacement placement_;
  std::vector<ComputeGraph::Reserved> graph_;
};

class LlamaCppModel : public EngineModel {
 public:
  Result<Estimate> estimate(const model::Model& model, const Job& job,
                            const std::vector<Target>& targets) const override {
    if (model.kind == model::ModelKind::vision_encoder || model.kind == model::ModelKind::dual_encoder ||
        model.family == "whisper")
      return fail(ErrorCode::unsupported, fmt::format("{} runs no {} models", name_of(job.engine), model.architecture));
    Bytes memory;
    for (const Target& target : targets) memory += std::min(target.total, Bytes{std::int64_t{1} << 50});
    LlamaSettings settings = GW_TRY(llama_settings(model, job, memory));
    LlamaPlacement placement = GW_TRY(llama_placement(model, job, settings, targets));
    return LlamaEstimator(model, job, targets, std::move(settings), std::move(placement)).estimate();
  }
};

}  // namespace

const EngineModel& llama_cpp_engine() {
  static const LlamaCppModel model;
  return model;
}

}  // namespace gpuwright::fit
