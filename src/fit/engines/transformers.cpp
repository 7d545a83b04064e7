// Hugging Face transformers (and litgpt's generate) as a PyTorch process sees them.
//
// generate() runs the whole prompt through the blocks once (prefill), then one token at a time (decode). Per GPU:
//   load         weights, and while they are quantised one 16-bit matrix
//   prefill      weights + cache of the prompt + what one block keeps alive for every token of the prompt: in a gated
//                block act(gate), up and their product (3 x feed-forward) beside four hidden-state vectors
//                (embeddings, block input, residual, normed input); on a GPU that does not hold the embeddings, three
//   first logits prompts whose logits are all computed (before 4.45): vocabulary x tokens x (2 + 4) B
//   decode end   weights + the full cache + one layer's old keys while torch.cat makes the new ones + sampling
// Until generate() held a DynamicCache itself (4.42), and in models that bring their own code, the whole old cache
// lives until the step ends: decode then needs the cache twice.
//
// Whether the prompt goes through in one piece is the caller's choice since prefill_chunk_size exists. A job that
// names neither a version nor a chunk gets both ends as its range.
// Checked against the public speed tables of Qwen2.5 (transformers 4.46) and Qwen3 (4.51), docs/accuracy.md.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "fit/engines/engines.h"
#include "fit/engines/torch_common.h"
#include "fit/engines/transformers_rank.h"

namespace gpuwright::fit {

using model::Model;

Result<Instant> TransformersRank::load() const {
  Instant load{"load", persistent(litgpt_),
               "load a quantised checkpoint, or quantize while loading (BitsAndBytesConfig)"};
  if (!litgpt_ && model_.weight_format.starts_with("bnb")) dequantized(load, 0);  // quantised while loading
  const Bytes head = head_while_loading();
  if (head > Bytes{} && stage_.last)
    load.components.push_back({ComponentKind::weights,
                               Meter::allocated,
                               {},
                               head,
                               head.scaled(1.04),
                               "the head stored beside tied embeddings, until it is tied",
                               "Qwen2.5 speed table: 0.5B AWQ with one token, 0.68 GB"});
  if (!litgpt_ || !stage_.last || quantized_head_saving(model_) == Bytes{}) return load;
  const Constant each = GW_TRY(constant(Engine::transformers, "litgpt_head_bytes_per_weight", job_.engine_version));
  const auto weights = static_cast<double>(model_.vocabulary * model_.hidden);
  load.components.push_back(Component::exact(ComponentKind::kv_cache, Meter::tensor, cache_at(tokens_.cached, true),
                                             "allocated for the whole request before the first token",
                                             "litgpt generate/base.py"));
  load.components.push_back(ranged(
      ComponentKind::compute_buffer, Meter::allocated,
      {each.low * weights, each.expected * weights, each.high * weights, each.source},
      fmt::format("quantised head written out: {} x {} x {:.0f} B", model_.vocabulary, model_.hidden, each.expected)));
  return load;
}

Instant TransformersRank::encode() const {
  Instant encode{tokens_.cached > 0 ? "encode" : "forward", persistent(), "smaller batches or shorter inputs"};
  encode.components.push_back(activations(tokens_.encoder));
  attention_scores(encode, tokens_.encoder);
  return encode;
}

Instant TransformersRank::prefill() const {
  const std::int64_t piece = std::min(tokens_.prompt, job_.transformers.prefill_chunk.value_or(tokens_.prompt));
  Instant prefill{"prefill", persistent(), "generate(prefill_chunk_size=...), a smaller batch, attn_implementation"};
  prefill.components.push_back(cache(litgpt_ ? tokens_.cached : tokens_.prompt, false));
  if (const auto state = recurrent_state()) prefill.components.push_back(*state);
  prefill.components.push_back(activations(piece));
  attention_scores(prefill, piece);
  dequantized(prefill, piece);
  return prefill;
}

Result<Instant> TransformersRank::first_logits() const {
  Instant first{"first logits", persistent(), "transformers 4.45 or newer, or a smaller batch"};
  first.components.push_back(cache(tokens_.prompt, false));
  const auto hidden = static_cast<double>(model_.hidden * tokens_.prompt * tokens_.sequences) * element_;
  first.components.push_back(ranged(ComponentKind::activations, Meter::allocated, hidden, hidden, 3 * hidden,
                                    fmt::format("last hidden states: {} x {} tokens", model_.hidden, tokens_.prompt),
                                    "transformers modeling_*.py"));
  first.components.push_back(GW_TRY(logits(tokens_.prompt)));
  return first;
}

Result<Instant> TransformersRank::decode_end() const {
  Instant decode{"decode end", persistent(), "fewer new tokens, a smaller batch, cache_implementation=\"quantized\""};
  decode.components.push_back(cache(tokens_.cached, true));
  cross_attention(decode);
  if (const auto state = recurrent_state()) decode.components.push_back(*state);
  decode.components.push_back(growing_cache());
  if (tokens_.sequences > 1) dequantized(decode, 1);
  if (stage_.last) decode.components.push_back(GW_TRY(logits(1)));
  return decode;
}

Result<GpuEstimate> TransformersRank::build() const {
  GpuEstimate gpu;
  gpu.gpu = target_.name;
  gpu.usable = target_.free - job_.reserve;
  gpu.usable_formula =
      fmt::format("{} free{}", to_string(target_.free),
                  job_.reserve > Bytes{} ? fmt::format(" - {} kept free", to_string(job_.reserve)) : "");
  gpu.meter = Meter::device;
  gpu.instants.push_back(GW_TRY(load()));
  if (tokens_.encoder > 0) gpu.instants.push_back(encode());
  if (tokens_.cached > 0 && model_.kind != model::ModelKind::encoder_decoder) {
    gpu.instants.push_back(prefill());
    const bool all_logits = !job_.transformers.last_token_logits || own_code_ || (!since("4.45") && !litgpt_);
    if (all_logits && stage_.last) gpu.instants.push_back(GW_TRY(first_logits()));
  }
  if (tokens_.cached > 0) gpu.instants.push_back(GW_TRY(decode_end()));
  for (Instant& instant : gpu.instants) GW_TRY(finish(instant));
  return gpu;
}

namespace {

class TransformersEngine final : public EngineModel {
 public:
  Result<Estimate> estimate(const Model& model, const Job& job, const std::vector<Target>& targets) const override {
    if (job.tensor_parallel > 1)
      return fail(ErrorCode::unsupported, "transformers splits a model by layers, not by tensors",
                  "leave out tensor parallelism, or use vllm");
    if (model.source == model::Source::gguf)
      return fail(ErrorCode::unsupported, "transformers unpacks a GGUF file to full precision when it loads it",
                  "use llama.cpp for this file, or name the original model");
    const TransformersTokens tokens = tokens_of(model, job);
    GW_TRY(check_magnitude(model, std::max(tokens.cached, tokens.encoder), tokens.sequences));
    const auto stages = balanced_stages(model, targets.size());
    Estimate answer;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      answer.per_gpu.push_back(GW_TRY(TransformersRank(model, job, targets[i], stages[i]).build()));
      answer.per_gpu.back().rank = static_cast<int>(i);
    }
    if (model.context_length > 0 && tokens.cached > model.context_length)
      answer.notes.push_back(fmt::format("{} tokens are more than the {} the model was trained on.",
                                         with_thousands(tokens.cached), with_thousands(model.context_length)));
    if (job.transformers.attention.empty())
      answer.notes.emplace_back("No attention kernel was given: sdpa, or eager for models of before 4.36.");
    if (targets.size() > 1) answer.notes.emplace_back("device_map=\"auto\": consecutive blocks, an equal share a GPU.");
    if (job.engine_version.empty() && !job.transformers.prefill_chunk)
      answer.notes.emplace_back(
          "Neither a version nor prefill_chunk_size was given: low is a prompt in pieces, high a prompt in one piece.");
    return answer;
  }
};

}  // namespace

const EngineModel& transformers_engine() {
  static const TransformersEngine engine;
  return engine;
}

}  // namespace gpuwright::fit
