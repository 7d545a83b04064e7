#include "fit/engines/transformers_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "fit/engines/torch_common.h"
#include "fit/kv_cache.h"

namespace gpuwright::fit {
namespace {

using model::AttentionKind;
using model::Dtype;
using model::Layer;
using model::Model;

constexpr std::int64_t kMib = 1 << 20;
constexpr std::int64_t kSmallestChunk = 1024;
constexpr std::int64_t kUsualPositions = 32768;
constexpr std::int64_t kGptqUnpackFrom = 128;  // AutoGPTQ kernel_switch_threshold
constexpr std::string_view kModels = "transformers modeling_*.py";
constexpr std::string_view kAllocator = "c10/cuda/CUDACachingAllocator.cpp: a rest of up to 1 MiB is not split off";

// Encoders without blocks of their own in `layers` are described by model.encoder.
std::vector<Layer> blocks_of(const Model& model, const TransformersStage& stage, bool encoder) {
  std::vector<Layer> blocks;
  if (encoder && model.encoder) {
    Layer layer;
    layer.attention.kind = AttentionKind::full;
    layer.attention.heads = layer.attention.kv_heads = model.encoder->heads;
    layer.attention.causal = false;
    layer.attention.key_dim = layer.attention.value_dim =
        model.encoder->hidden / std::max<std::int64_t>(model.encoder->heads, 1);
    layer.feed_forward.width = model.encoder->feed_forward_width;
    layer.feed_forward.gated = false;
    blocks.push_back(layer);
    return blocks;
  }
  for (std::size_t i = stage.first_layer; i < stage.last_layer && i < model.layers.size(); ++i)
    blocks.push_back(model.layers[i]);
  return blocks;
}

}  // namespace

TransformersRank::TransformersRank(const Model& model, const Job& job, const Target& target,
                                   const TransformersStage& stage)
    : model_(model), job_(job), target_(target), stage_(stage), tokens_(tokens_of(model, job)) {
  key_ = cache_type(job.key_type, model);
  value_ = cache_type(job.value_type ? job.value_type : job.key_type, model);
  element_ = static_cast<double>(activation_bytes(model));
  litgpt_ = lower(job.transformers.library) == "litgpt";
  constexpr std::array<std::string_view, 5> kOwnCode = {"qwen", "baichuan", "chatglm", "internlm", "internlm2"};
  own_code_ = std::find(kOwnCode.begin(), kOwnCode.end(), model.family) != kOwnCode.end();
  const std::string_view usual = model.family == "qwen" || !since("4.36") ? "eager" : "sdpa";
  attention_ = litgpt_ ? "flash_attention_2" : job.transformers.attention.empty() ? usual : job.transformers.attention;
}

Bytes quantized_head_saving(const Model& model) {
  Dtype format = Dtype::unknown;
  for (const model::Tensor& tensor : model.tensors)
    if (tensor.dtype == Dtype::bnb_nf4 || tensor.dtype == Dtype::bnb_nf4_dq) format = tensor.dtype;
  if (format == Dtype::unknown) return {};
  Bytes saving;
  for (const model::Tensor& tensor : model.tensors)
    if (tensor.role == model::TensorRole::output_head && tensor.dtype != format)
      saving += tensor.bytes - model::storage_bytes(format, 1, tensor.rows * tensor.columns).value_or(tensor.bytes);
  return saving;
}

// AutoAWQ loads the stored head of a tied model before tying it to the embeddings: one matrix more while loading.
Bytes TransformersRank::head_while_loading() const {
  if (!model_.tied_embeddings || litgpt_ || !model_.weight_format.starts_with("awq")) return {};
  return bytes_of(model_, model::TensorRole::token_embedding);
}

Bytes TransformersRank::untied_fp8_head() const {
  if (!model_.tied_embeddings || litgpt_) return {};
  const bool fp8 = std::any_of(model_.tensors.begin(), model_.tensors.end(),
                               [](const model::Tensor& tensor) { return tensor.dtype == Dtype::f8_e4m3; });
  return fp8 ? bytes_of(model_, model::TensorRole::token_embedding) : Bytes{};
}

// Checkpoints of one model declare different lengths (instruct ones often 32,768), so the expected length is bounded.
std::optional<Component> TransformersRank::rotary_tables() const {
  if (litgpt_ || own_code_ || since("4.45")) return std::nullopt;
  double width = 0;
  for (std::size_t i = 0; i < model_.layers.size(); ++i)
    if (holds(i)) width += 2 * static_cast<double>(model_.layers[i].attention.key_dim) * element_;
  const double all = width * static_cast<double>(model_.context_length);
  const double usual = width * static_cast<double>(std::min(model_.context_length, kUsualPositions));
  const bool dropped = model_.family == "llama" && since("4.41");
  return ranged(ComponentKind::compute_buffer, Meter::allocated, 0, dropped ? 0 : usual, std::min(all, 2 * usual),
                "cosines and sines of every position, in every block",
                "transformers before 4.45: RotaryEmbedding of each attention layer, cos_cached");
}

std::vector<Component> TransformersRank::persistent(bool running) const {
  std::vector<Component> components;
  Bytes weights = stage_.weights;
  std::string formula = fmt::format("tensors of {} blocks", stage_.last_layer - stage_.first_layer);
  if (litgpt_ && stage_.last) {
    weights -= quantized_head_saving(model_);
    formula += ", output head quantised as well";
  }
  components.push_back(
      Component::exact(ComponentKind::weights, Meter::tensor, weights, formula, "the model's tensors"));
  const Bytes own_head = untied_fp8_head();
  if (own_head > Bytes{} && stage_.last)
    components.push_back(Component{ComponentKind::weights,
                                   Meter::allocated,
                                   {},
                                   own_head,
                                   own_head,
                                   "the output head, stored with FP8 checkpoints and not tied when they load",
                                   "Qwen3 speed table: Qwen3-4B-FP8 takes one embedding matrix more than its linears"});
  if (const auto tables = rotary_tables()) components.push_back(*tables);
  // Since 4.50 one warm-up allocation of the whole size leaves a segment from which tensors are cut exactly.
  const bool warmed_up = !litgpt_ && since("4.50");
  const auto slack = static_cast<double>((stage_.weights_rounded - stage_.weights).count);
  components.push_back(ranged(ComponentKind::allocator, Meter::allocated, 0, warmed_up ? 0 : slack, slack,
                              warmed_up ? "tensors cut from one segment" : "segments rounded up to 2 MiB",
                              std::string(kAllocator)));
  if (running) components.push_back(cublas_workspace(target_.architecture));
  if (model_.weight_format.starts_with("gptq-int4") || model_.weight_format.starts_with("gptq-4"))
    components.push_back(Component::exact(
        ComponentKind::compute_buffer, Meter::allocated, largest_quantized_matrix(model_, 7),
        "ExLlama scratch: the largest quantised matrix in 16 bits", "AutoGPTQ exllama temp_dq, one a device"));
  return components;
}

Bytes TransformersRank::cache_of(const Layer& layer, std::int64_t tokens) const {
  const model::Attention& attention = layer.attention;
  if (attention.cached_elements_per_token() == 0) return {};
  const bool expanded =
      attention.kind == AttentionKind::latent && attention.heads > 0 && attention.key_dim > 0 && !since("5.24");
  if (!expanded) return cache_bytes_per_token(attention, key_, value_) * tokens;
  model::Attention all_heads = attention;
  all_heads.kind = AttentionKind::full;
  all_heads.kv_heads = attention.heads;
  return cache_bytes_per_token(all_heads, key_, value_) * tokens;
}

// Sliding layers keep W - 1 tokens once decoding, but all of the prompt until then: they hold a view into it.
Bytes TransformersRank::cache_at(std::int64_t tokens, bool decoding) const {
  Bytes total;
  for (std::size_t i = 0; i < model_.layers.size(); ++i) {
    if (!holds(i)) continue;
    const model::Attention& attention = model_.layers[i].attention;
    const bool bounded = decoding && attention.kind == AttentionKind::sliding && attention.window > 0;
    total += cache_of(model_.layers[i], bounded ? std::min(tokens, attention.window) : tokens) * tokens_.sequences;
  }
  return total;
}

Component TransformersRank::cache(std::int64_t tokens, bool decoding) const {
  const Bytes bytes = cache_at(tokens, decoding);
  const Bytes per_token = cache_at(1, false) / std::max<std::int64_t>(tokens_.sequences, 1);
  Component component = Component::exact(
      ComponentKind::kv_cache, Meter::tensor, bytes,
      fmt::format("{} x {} tokens x {} sequences{}", to_string(per_token), with_thousands(tokens), tokens_.sequences,
                  litgpt_ ? ", allocated for the whole request" : ""),
      litgpt_ ? "litgpt generate/base.py: set_kv_cache(max_returned_tokens)" : "transformers cache_utils.py");
  if (decoding && !since("4.56")) component.high = std::max(bytes, cache_at(tokens, false));
  return component;
}

std::optional<Component> TransformersRank::recurrent_state() const {
  Bytes low, high;
  for (std::size_t i = 0; i < model_.layers.size(); ++i) {
    if (!holds(i) || model_.layers[i].recurrent.kind == model::RecurrentKind::none) continue;
    model::Recurrent recurrent = model_.layers[i].recurrent;
    recurrent.d_conv += 1;  // the reference code keeps every tap
    low += recurrent_bytes(recurrent, Bytes{2}, Bytes{2}) * tokens_.sequences;
    high += recurrent_bytes(recurrent, Bytes{2}, Bytes{4}) * tokens_.sequences;
  }
  if (high == Bytes{}) return std::nullopt;
  return Component{ComponentKind::recurrent_state,
                   Meter::tensor,
                   low,
                   high,
                   high,
                   "convolution in 16 bits, state in fp32 (low: 16 bits)",
                   std::string(kModels)};
}

void TransformersRank::cross_attention(Instant& instant) const {
  Bytes bytes;
  for (const Layer& layer : model_.cross_attention_layers)
    bytes += cache_bytes_per_token(layer.attention, key_, value_) * tokens_.encoder * tokens_.sequences;
  if (bytes == Bytes{} || !stage_.last) return;
  instant.components.push_back(Component::exact(ComponentKind::kv_cache, Meter::tensor, bytes,
                                                fmt::format("cross-attention of {} blocks x {} encoder positions",
                                                            model_.cross_attention_layers.size(), tokens_.encoder),
                                                "transformers cache_utils.py, EncoderDecoderCache"));
}

Component TransformersRank::activations(std::int64_t tokens) const {
  const bool encoder = tokens_.encoder > 0 && tokens == tokens_.encoder;
  BlockContext context = block_context(model_);
  if (encoder && model_.encoder) context.hidden = model_.encoder->hidden;
  context.carried = stage_.first && !encoder ? 3 : 2;  // an encoder does not keep its embeddings
  context.grouped_experts = since("5.0") && !litgpt_;
  context.expand_keys = attention_ == "eager" || (attention_ == "sdpa" && tokens_.sequences > 1);
  LiveWidth widest;
  std::int64_t rotary = 0;
  for (const Layer& layer : blocks_of(model_, stage_, encoder)) {
    const LiveWidth width = live_width(layer, context);
    if (width.high > widest.high) widest = width;
    rotary = std::max(rotary, 2 * layer.attention.key_dim);  // cos and sin of every position
  }
  const auto in_flight = static_cast<double>(tokens * tokens_.sequences);
  const auto bytes_for = [&](double width, double count) {
    return (width + static_cast<double>(rotary)) * element_ * count;
  };
  double low = 0.97 * bytes_for(widest.low, in_flight), expected = bytes_for(widest.expected, in_flight);
  const double high = 1.03 * bytes_for(widest.high, in_flight);
  std::string formula =
      fmt::format("({}) x {:.0f} B x {} tokens", widest.formula, element_, with_thousands(tokens * tokens_.sequences));
  const bool unknown_pieces = !encoder && !litgpt_ && !own_code_ && job_.engine_version.empty() &&
                              !job_.transformers.prefill_chunk && tokens > kSmallestChunk;
  if (unknown_pieces) {
    low = bytes_for(widest.low, static_cast<double>(kSmallestChunk * tokens_.sequences));
    expected = (low + expected) / 2;
    formula += fmt::format("; low: in pieces of {}, expected: half way", kSmallestChunk);
  }
  return ranged(ComponentKind::activations, Meter::allocated, low, expected, high, formula, std::string(kModels));
}

// eager attention: scores in 16 bits, their softmax in fp32 and its 16-bit copy; own code converts the scores to fp32
// first. sdpa: a mask when prompts are padded.
void TransformersRank::attention_scores(Instant& instant, std::int64_t tokens) const {
  if (attention_ == "flash_attention_2" || tokens <= 1) return;
  const double squared =
      static_cast<double>(tokens_.sequences) * static_cast<double>(tokens) * static_cast<double>(tokens);
  if (attention_ == "sdpa") {
    if (tokens_.sequences > 1)
      instant.components.push_back(ranged(ComponentKind::activations, Meter::allocated, 0, squared, squared * element_,
                                          fmt::format("attention mask of {} x {}^2", tokens_.sequences, tokens),
                                          "transformers masking_utils.py: a mask only when prompts are padded"));
    return;
  }
  std::int64_t heads = 0;
  for (const Layer& layer : blocks_of(model_, stage_, tokens_.encoder == tokens))
    heads = std::max(heads, layer.attention.heads);
  const double scores = squared * static_cast<double>(heads);
  const double each = tokens_.encoder == tokens ? 2 * element_ : own_code_ ? element_ + 10 : element_ + 6;
  instant.components.push_back(ranged(
      ComponentKind::activations, Meter::allocated, scores * std::min(each, element_ + 4), scores * each,
      scores * std::max(each, element_ + 8), fmt::format("{} heads x {}^2 scores x {:.0f} B", heads, tokens, each),
      "transformers eager_attention_forward"));
}

// Kernels that multiply many rows at once first write the matrix out in 16 bits: at that moment two of the three
// feed-forward vectors are alive. AutoGPTQ unpacks 8-bit matrices with PyTorch operations, 6 B a weight, beside one
// vector. Only what goes beyond the three vectors counts here.
void TransformersRank::dequantized(Instant& instant, std::int64_t tokens) const {
  const bool eight_bit_gptq = model_.weight_format.starts_with("gptq-int8");
  if (model_.weight_format.starts_with("gptq") && (!eight_bit_gptq || tokens <= kGptqUnpackFrom)) return;
  const Bytes matrix = largest_quantized_matrix(model_, eight_bit_gptq ? 9 : 7);
  if (matrix == Bytes{}) return;
  std::int64_t width = 0;
  for (const Layer& layer : model_.layers) width = std::max(width, layer.feed_forward.width);
  const double vector = static_cast<double>(width * tokens * tokens_.sequences) * element_;
  const auto written = static_cast<double>(matrix.count);
  const double beyond = std::max({0.0, written - vector, eight_bit_gptq ? 3 * written - 2 * vector : 0.0});
  instant.components.push_back(ranged(ComponentKind::compute_buffer, Meter::allocated, 0, beyond,
                                      std::max(beyond, written),
                                      fmt::format("the largest matrix written out in 16 bits, {}", to_string(matrix)),
                                      "bitsandbytes MatMul4Bit, AutoAWQ WQLinear_GEMM, AutoGPTQ qlinear_cuda"));
}

Result<Component> TransformersRank::logits(std::int64_t positions) const {
  const auto count = static_cast<double>(model_.vocabulary * tokens_.sequences * positions);
  if (positions > 1) {
    const double each = own_code_ || since("4.45") ? element_ : element_ + 4;
    return ranged(ComponentKind::logits, Meter::allocated, 0.97 * each * count, each * count, 1.05 * each * count,
                  fmt::format("{} x {} positions x {:.0f} B", model_.vocabulary, positions * tokens_.sequences, each),
                  "before 4.45 forward() computes every position's logits and their fp32 copy");
  }
  const Constant each = GW_TRY(constant(Engine::transformers, "sampling_bytes_per_logit", job_.engine_version));
  return ranged(ComponentKind::logits, Meter::allocated,
                {each.low * count, each.expected * count, each.high * count, each.source},
                fmt::format("{} x {} sequences x {:.0f} B", model_.vocabulary, tokens_.sequences, each.expected));
}

// What growing the cache by torch.cat costs: one layer's old keys beside its new ones, and up to 1 MiB of every larger
// tensor that the allocator does not split off. A tuple cache keeps all of the old one.
bool TransformersRank::tuple_cache() const {
  if (litgpt_) return false;
  constexpr std::array<std::string_view, 8> kLater = {"gpt2",  "gptj", "gptneox", "falcon",
                                                      "bloom", "opt",  "mpt",     "starcoder"};
  const bool later = std::find(kLater.begin(), kLater.end(), model_.family) != kLater.end();
  return own_code_ || !since("4.42") || (later && !since("4.50"));
}

Component TransformersRank::growing_cache() const {
  double one_layer = 0, slack = 0;
  for (std::size_t i = 0; i < model_.layers.size(); ++i) {
    if (!holds(i)) continue;
    const auto half = static_cast<double>((cache_of(model_.layers[i], tokens_.cached) * tokens_.sequences).count) / 2;
    one_layer = std::max(one_layer, half);
    if (half > static_cast<double>(kMib)) slack += 2 * static_cast<double>(kMib);
  }
  if (litgpt_) one_layer = slack = 0;
  if (tuple_cache()) {
    const auto all = static_cast<double>(cache_at(tokens_.cached, true).count);
    return ranged(ComponentKind::kv_cache, Meter::allocated, 0.97 * all, all + slack, 1.5 * all + 4 * slack,
                  "the old cache lives until the step ends: the cache once more",
                  "transformers before 4.42, models with their own code: generate() holds the old tuple");
  }
  return ranged(ComponentKind::allocator, Meter::allocated, 0, std::min(one_layer, 16.0 * kMib) + slack / 2,
                one_layer + slack, "one layer's old keys beside the new ones, and unsplit rests of cache tensors",
                std::string(kAllocator));
}

Status TransformersRank::finish(Instant& instant) const {
  if (instant.name != "load") {
    const Constant small = GW_TRY(constant(Engine::transformers, "small_buffers_bytes", job_.engine_version));
    instant.components.push_back(
        ranged(ComponentKind::allocator, Meter::allocated, small, "masks, positions, sampling state, Lt workspaces"));
  }
  const Bytes allocated = instant.total(Meter::allocated).expected;
  const Constant slack = GW_TRY(constant(Engine::transformers, "allocator_slack_share", job_.engine_version));
  const auto base = static_cast<double>(allocated.count);
  instant.components.push_back(ranged(ComponentKind::allocator, Meter::reserved,
                                      {slack.low * base, slack.expected * base, slack.high * base, slack.source},
                                      fmt::format("{:.0f} % of what is allocated", 100 * slack.expected)));
  instant.components.push_back(GW_TRY(cuda_context(Engine::transformers, job_.engine_version, target_.architecture)));
  return {};
}

}  // namespace gpuwright::fit
