// What is asked of the GPUs in training: this model, fine-tuned by that engine, this way. Optional values that are not
// given are the engine's own default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/dtype.h"

namespace gpuwright::fit {

// transformers covers Trainer, PEFT, TRL, ms-swift and LLaMA-Factory without DeepSpeed or FSDP; gpuwright is our own
// trainer (engines/train).
enum class TrainingEngine : std::uint8_t {
  transformers,
  deepspeed,
  fsdp,
  torchtune,
  torchtitan,
  unsloth,
  litgpt,
  megatron,
  gpuwright,
};

enum class TrainingMethod : std::uint8_t { full, lora, dora, qlora };

// How weights, gradients and optimizer states are stored; bytes per parameter: recipe.h.
enum class Precision : std::uint8_t {
  fp32,
  pure_bf16,  // everything in bf16, no master weights
  pure_fp16,  // of frozen bases under LoRA
  amp_bf16,   // fp32 weights, autocast copies (Hugging Face Trainer --bf16)
  amp_fp16,
  mixed_deepspeed,  // bf16 or fp16 weights and gradients, fp32 master and states in the optimizer
  mixed_megatron,   // bf16 weights, fp32 gradients, master and states
};

enum class Optimizer : std::uint8_t {
  adamw,       // torch.optim.AdamW, foreach: temporaries of the whole set at the step
  adamw_loop,  // one tensor after the other (Trainer's adamw_hf, foreach=False)
  adamw_fused,
  adamw_8bit,  // bitsandbytes or torchao, block-wise
  adamw_4bit,
  adamw_fp8,
  adamw_paged,  // states may spill to host memory
  adafactor,
  sgd,
  sgd_momentum,
};

enum class Checkpointing : std::uint8_t { none, selective, full, offloaded };

enum class Sharding : std::uint8_t { none, zero1, zero2, zero3, fsdp, fsdp_grad_only };

struct LoraOptions {
  std::int64_t rank = 8;
  // Names of the modules that get adapters, as the model's own code calls them; empty = the engine's default;
  // "all-linear" = every linear of the blocks.
  std::vector<std::string> targets;
  model::Dtype adapter_dtype = model::Dtype::f32;
  bool trainable_embeddings = false;  // embeddings and head are trained (and saved) whole
  bool dropout = false;               // on the adapters' inputs
};

struct ShardingOptions {
  Sharding kind = Sharding::none;
  bool offload_optimizer = false;  // states and step on the CPU
  bool offload_parameters = false;
  bool overlap_comm = true;                     // ZeRO
  std::optional<std::int64_t> bucket_elements;  // ZeRO reduce and all-gather buckets, default 5e8
  bool limit_all_gathers = true;                // FSDP
  bool partitioned_at_load = true;              // ZeRO-3: zero.Init; else every rank first holds the whole model
};

struct TrainingJob {
  TrainingEngine engine = TrainingEngine::transformers;
  std::string engine_version;
  TrainingMethod method = TrainingMethod::full;

  std::int64_t micro_batch = 1;  // sequences a GPU holds at once
  std::int64_t gradient_accumulation = 1;
  std::int64_t sequence = 2048;  // tokens of the longest (padded or packed) sequence
  bool varying_lengths = false;  // samples are neither packed nor padded to one length: the allocator keeps more

  Precision precision = Precision::pure_bf16;
  Optimizer optimizer = Optimizer::adamw;
  bool optimizer_in_backward = false;
  Checkpointing checkpointing = Checkpointing::none;
  bool activation_offload = false;
  std::string attention = "flash_attention_2";  // eager, sdpa, flash_attention_2
  bool fused_kernels = false;                   // RMSNorm and SwiGLU that keep less (Liger, unsloth, ours)
  bool compiled = false;
  bool float8_linears = false;         // inputs are kept in 16 bit all the same: changes speed, hardly memory
  bool chunked_cross_entropy = false;  // logits never exist whole
  bool loss_in_fp32 = true;  // false: the model's code leaves fp16 logits as they are (Qwen-1 without autocast)
  std::optional<std::int64_t> cross_entropy_chunks;

  LoraOptions lora;
  ShardingOptions sharding;

  int data_parallel = 1;  // replicas or shards, over all machines
  int tensor_parallel = 1;
  int pipeline_parallel = 1;
  int pipeline_stage = 0;
  int context_parallel = 1;
  bool sequence_parallel = false;
  bool interleaved_pipeline = false;
  int gpus_per_node = 8;

  Bytes reserve;
};

struct TrainingEngineChoice {
  TrainingEngine engine = TrainingEngine::transformers;
  std::string version;
};
Result<TrainingEngineChoice> training_engine_named(std::string_view text);
std::string_view name_of(TrainingEngine engine);
// What the engine does when nobody says otherwise.
Precision usual_precision(TrainingEngine engine, TrainingMethod method);
std::string_view name_of(TrainingMethod method);

}  // namespace gpuwright::fit
