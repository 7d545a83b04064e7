#include "fit/training/activations.h"

#include <fmt/format.h>

#include <algorithm>

#include "fit/engine.h"
#include "fit/training/recipe.h"

namespace gpuwright::fit::training {
namespace {

// One layer under one job: widths in elements, counts in bytes a token.
struct Block {
  const model::Model& model;
  const model::Layer& layer;
  const TrainingJob& job;
  Shares shares;
  double element = 2, residual = 2;
  bool trains_base = false;
  bool dropout = false;     // BERT, GPT-2 and kin drop out attention probabilities and both outputs
  bool fused_norm = false;  // keeps its input alone
  bool fused_gate = false;  // SwiGLU recomputes SiLU in backward
  double hidden = 0, query = 0, key = 0, value = 0, feed_forward = 0, routed = 1;
  std::vector<const Module*> adapters = {};
};

bool is_encoder(const model::Model& model) {
  return model.kind == model::ModelKind::encoder || model.kind == model::ModelKind::encoder_decoder ||
         model.kind == model::ModelKind::vision_encoder || model.kind == model::ModelKind::dual_encoder;
}

bool has_layer_norm(const model::Model& model) {
  if (is_encoder(model)) return true;
  for (const std::string_view family : {"gpt2", "gptj", "gpt-neox", "gptneox", "gpt_neox", "phi", "phi2", "falcon",
                                        "bloom", "opt", "mpt", "galactica", "starcoder", "starcoder2", "bert"})
    if (model.family == family) return true;
  return false;
}

bool has_dropout(const model::Model& model) {
  return is_encoder(model) || model.family == "gpt2" || model.family == "opt" || model.family == "bert";
}

double width(std::int64_t value) {
  return static_cast<double>(value);
}

Block block_of(const model::Model& model, std::size_t index, const std::vector<Module>& adapted,
               const TrainingJob& job) {
  const model::Layer& layer = model.layers[index];
  Block block{model, layer, job, shares_of(job), activation_element(job), residual_element(job)};
  block.trains_base = job.method == TrainingMethod::full;
  block.dropout = has_dropout(model);
  block.fused_norm = job.fused_kernels || job.compiled || has_layer_norm(model);
  block.fused_gate = job.fused_kernels || job.compiled;
  const model::Attention& attention = layer.attention;
  const model::FeedForward& inner = layer.feed_forward;
  block.hidden = width(model.hidden);
  block.query = width(attention.heads * attention.key_dim);
  const bool latent = attention.kind == model::AttentionKind::latent;
  const std::int64_t key_heads = latent ? attention.heads : attention.kv_heads;
  block.key = width(key_heads * attention.key_dim);
  block.value = width(key_heads * attention.value_dim);
  block.feed_forward = width(inner.width);
  if (inner.experts > 0) {
    block.routed = width(std::max<std::int64_t>(1, inner.experts_per_token));
    block.feed_forward = block.routed * width(inner.expert_width) + width(inner.shared_width);
  }
  for (const Module& module : adapted)
    if (module.layer == static_cast<std::int32_t>(index)) block.adapters.push_back(&module);
  return block;
}

bool adapts(const Block& block, Reads reads) {
  return std::any_of(block.adapters.begin(), block.adapters.end(),
                     [&](const Module* module) { return module->reads == reads; });
}

// bitsandbytes keeps the input of a frozen 4-bit product in backward's context (autograd/_functions.py, MatMul4Bit,
// before 0.43), PyTorch's own linear does not.
bool quantised_products_keep_inputs(const Block& block) {
  return block.job.method == TrainingMethod::qlora && block.job.engine == TrainingEngine::litgpt;
}

bool keeps_input(const Block& block, Reads reads) {
  return block.trains_base || adapts(block, reads) || quantised_products_keep_inputs(block);
}

// fp32 copy of the input of a plain RMSNorm (the residual itself where that is fp32), and the normalised vector where
// the norm's weight is trained.
double norm_bytes(const Block& block) {
  if (block.fused_norm) return block.residual * block.hidden;
  double bytes = 4 * block.hidden + (block.trains_base ? std::max(block.residual, 2.0) * block.hidden : 0);
  // libtorch 1.13's mean keeps the squares it averages.
  if (block.job.engine == TrainingEngine::gpuwright && !version_at_least(block.job.engine_version, "2.0"))
    bytes += 4 * block.hidden;
  if (block.job.engine == TrainingEngine::litgpt && block.trains_base) bytes += 2 * block.hidden;
  return bytes;
}

// Norms, and what the products after them keep of their output.
double residual_bytes(const Block& block) {
  const double norms = block.model.parallel_block ? 1 : 2;
  double bytes = norms * norm_bytes(block);
  const bool shared = block.model.parallel_block;
  const bool first = keeps_input(block, Reads::attention_input), second = keeps_input(block, Reads::feed_forward_input);
  bytes += block.element * block.hidden * (shared ? (first || second ? 1 : 0) : (first ? 1 : 0) + (second ? 1 : 0));
  if (block.dropout) bytes += 2 * block.hidden;  // masks
  return bytes / block.shares.sequence_parallel;
}

// Bytes that one query-key pair keeps, and what its backward needs beside.
struct PairBytes {
  double saved = 0, backward = 0;
};
PairBytes pair_bytes(const Block& block) {
  if (!keeps_probabilities(block.model, block.job)) return {};
  const double heads = width(block.layer.attention.heads);
  double saved = block.element == 4 ? 4 : 6;    // fp32 softmax and its 16-bit cast
  if (block.model.family == "qwen") saved = 5;  // 16-bit softmax, mask, dropped
  const bool autocast = block.job.precision == Precision::amp_bf16 || block.job.precision == Precision::amp_fp16;
  // Softmax, mask, dropped; autocast keeps the softmax and its dropout in fp32 beside the 16-bit operand. In fp32
  // BERT's rows show 4 bytes more than these, as if the scores were kept.
  if (block.dropout) saved = autocast ? 11 : block.element == 4 ? 13 : 5;
  if (block.job.engine == TrainingEngine::gpuwright) saved = 4;  // one fp32 matrix
  if (block.job.engine == TrainingEngine::megatron) saved = 5;
  const double backward = block.job.engine == TrainingEngine::gpuwright ? 8 : block.element == 4 ? 8 : 12;
  return {saved * heads * block.shares.sequence, backward * heads * block.shares.sequence};
}

double attention_bytes(const Block& block) {
  const model::Attention& attention = block.layer.attention;
  if (attention.kind == model::AttentionKind::none) return 0;
  double key = block.key, value = block.value;
  // Only flash kernels read grouped keys as they are; others get them repeated for every query head.
  const bool repeats = block.job.attention != "flash_attention_2" && block.job.engine != TrainingEngine::gpuwright;
  if (repeats && attention.kv_heads > 0 && attention.kind != model::AttentionKind::latent) {
    key = width(attention.heads * attention.key_dim);
    value = width(attention.heads * attention.value_dim);
  }
  const double output = width(attention.heads * attention.value_dim);
  double elements = block.query + key + value + output;
  if (attention.kind == model::AttentionKind::latent)
    elements += width(attention.kv_lora_rank + attention.rope_dim) + 1.5 * width(attention.q_lora_rank);
  // litgpt splits one fused projection: the views keep all of it beside the rotated copies.
  if (block.job.engine == TrainingEngine::litgpt) elements += block.query + block.key;
  // Fitted on Llama-2-7B NF4, judged on 13B and on double quantisation: three vectors more a layer, one of which is
  // the attention's output made contiguous for the product that keeps it.
  if (quantised_products_keep_inputs(block)) elements += 3 * block.hidden;
  double bytes = block.element * elements + 4 * width(attention.heads);
  return (bytes + pair_bytes(block).saved) / block.shares.tensor_parallel;
}

// Mamba, gated delta nets, convolutions: projections, convolution, gate and scan inputs, about eight inner widths.
double recurrent_bytes(const Block& block) {
  const model::Recurrent& r = block.layer.recurrent;
  if (r.kind == model::RecurrentKind::none) return 0;
  double inner = width(std::max({r.d_inner, r.value_heads * r.value_dim, block.model.hidden}));
  inner += width(r.key_heads * r.key_dim + r.n_group * r.d_state);
  const double norm = block.layer.attention.kind == model::AttentionKind::none && block.layer.feed_forward.width == 0
                          ? 0
                          : norm_bytes(block);
  return (8 * block.element * inner) / block.shares.tensor_parallel + norm;
}

double feed_forward_bytes(const Block& block) {
  const model::FeedForward& inner = block.layer.feed_forward;
  if (block.feed_forward == 0) return 0;
  double vectors = inner.gated ? (block.fused_gate ? 2 : 3) : 1;
  const bool product = keeps_input(block, Reads::feed_forward_output);
  if (product) vectors += 1;
  double bytes = block.element * vectors * block.feed_forward;
  if (inner.experts > 0)  // permuted inputs and outputs of the routed tokens, and the router's probabilities
    bytes += block.element * 2 * block.routed * block.hidden + 8 * width(inner.experts);
  return bytes / block.shares.tensor_parallel;
}

// PEFT casts the input of each fp32 adapter on its own; its dropout keeps a mask and a copy of its own, too.
double adapter_bytes(const Block& block) {
  double bytes = 0;
  const bool autocast = block.job.precision == Precision::amp_bf16 || block.job.precision == Precision::amp_fp16;
  const bool wide = block.job.lora.adapter_dtype == model::Dtype::f32 && !autocast && block.element == 2;
  bool counted_fused_input = false;
  for (const Module* module : block.adapters) {
    const double used = module->is_expert ? block.routed : 1;
    const double adapter_element = wide ? 4 : block.element;
    bytes += used * adapter_element * width(block.job.lora.rank);
    if (wide && block.job.engine != TrainingEngine::unsloth) bytes += used * 4 * module->in;
    // litgpt's recipe drops 5 % and has one adapter input for q, k and v.
    const bool litgpt = block.job.engine == TrainingEngine::litgpt;
    const bool again = litgpt && module->reads == Reads::attention_input && counted_fused_input;
    if ((block.job.lora.dropout || litgpt) && !again) bytes += used * (1 + adapter_element) * module->in;
    counted_fused_input = counted_fused_input || module->reads == Reads::attention_input;
    if (block.job.method == TrainingMethod::dora) bytes += used * block.element * module->out;
  }
  return bytes / block.shares.tensor_parallel;
}

// Of an fp32 model under autocast the 16-bit copies of the weights live in the graph of our own trainer.
double cast_weights(const Block& block) {
  if (block.job.engine != TrainingEngine::gpuwright || !block.trains_base || block.element == 4) return 0;
  const double matrices = block.layer.feed_forward.gated ? 3 : 2;
  return 2 *
         (block.hidden * (2 * block.query + block.key + block.value) + matrices * block.hidden * block.feed_forward);
}

// The largest of what the parts of a layer need in their backward beside what they kept: gradients of gate, up and
// product; of the probabilities; always of the residual stream and of a norm's fp32 copy.
double backward_bytes(const Block& block) {
  const double feed_forward = (block.layer.feed_forward.gated ? 3 : 2) * block.element * block.feed_forward;
  const double pairs = pair_bytes(block).backward;
  const double heads = block.element * (block.query + block.key + block.value);
  const double streams = (block.job.engine == TrainingEngine::unsloth     ? 0
                          : block.job.engine == TrainingEngine::gpuwright ? 1.5
                                                                          : 2) *
                         std::max(block.residual, block.element);
  return std::max({feed_forward, pairs, heads}) / block.shares.tensor_parallel +
         streams * block.hidden / block.shares.sequence_parallel;
}

// torchtitan's selective checkpointing by operation keeps every second matrix product's output and the attention's;
// Megatron's recomputes attention's core alone, which a flash kernel does anyway.
double selective_bytes(const Block& block, double saved) {
  if (block.job.engine != TrainingEngine::torchtitan)
    return saved - pair_bytes(block).saved / block.shares.tensor_parallel;
  const double products = block.query + block.key + block.value + 2 * block.hidden +
                          (block.layer.feed_forward.gated ? 2 : 1) * block.feed_forward;
  const double kept = products / 2 + width(block.layer.attention.heads * block.layer.attention.value_dim);
  return (block.element * kept + 4 * width(block.layer.attention.heads)) / block.shares.tensor_parallel +
         2 * block.residual * block.hidden / block.shares.sequence_parallel;
}

}  // namespace

Shares shares_of(const TrainingJob& job) {
  Shares shares;
  const double context = job.context_parallel;
  shares.tokens = width(job.micro_batch) * width(job.sequence) / context;
  shares.sequence = width(job.sequence);
  shares.tensor_parallel = job.tensor_parallel;
  shares.sequence_parallel = job.sequence_parallel ? job.tensor_parallel : 1;
  return shares;
}

bool keeps_probabilities(const model::Model& model, const TrainingJob& job) {
  // ChatGLM's own code gives torch a dense mask, for which only the plain kernel exists.
  if (model.family == "chatglm" && job.engine != TrainingEngine::unsloth) return true;
  return job.attention == "eager";
}

LayerBytes layer_bytes(const model::Model& model, std::size_t layer, const std::vector<Module>& adapted,
                       const TrainingJob& job) {
  const Block block = block_of(model, layer, adapted, job);
  const double tokens = block.shares.tokens;
  const double residual = residual_bytes(block), attention = attention_bytes(block) + recurrent_bytes(block),
               inner = feed_forward_bytes(block), adapters = adapter_bytes(block);
  const double saved = residual + attention + inner + adapters;
  LayerBytes bytes;
  bytes.saved = tokens * saved + cast_weights(block) / block.shares.tensor_parallel;
  bytes.selective = tokens * selective_bytes(block, saved);
  bytes.input = tokens * block.residual * block.hidden / block.shares.sequence_parallel;
  bytes.backward = tokens * backward_bytes(block);
  // Recomputing, the first norm keeps the checkpointed input itself, unless it makes an fp32 copy of it.
  bytes.shared_input = block.fused_norm || block.residual == 4 ? bytes.input : 0;
  bytes.formula =
      fmt::format("{:.0f} tokens x ({:.0f} norms + {:.0f} attention + {:.0f} feed-forward{}) B", tokens, residual,
                  attention, inner, adapters > 0 ? fmt::format(" + {:.0f} adapters", adapters) : std::string());
  return bytes;
}

}  // namespace gpuwright::fit::training
