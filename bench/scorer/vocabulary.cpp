#include "vocabulary.h"

namespace gpuwright::scorer {
namespace {
using Words = std::vector<std::string>;
}

const Words& known_modes() {
  static const Words words = {"inference", "full", "lora", "dora", "qlora"};
  return words;
}

const Words& known_components() {
  static const Words words = {"weights",     "kv",         "kv-recurrent", "recurrent", "compute",
                              "overhead",    "activation", "budget",       "blocks",    "tokens",
                              "max-context", "total-peak", "model-states"};
  return words;
}

const Words& known_places() {
  static const Words words = {"gpu", "sum", "host", "output", "draft", "mmproj", "file"};
  return words;
}

const Words& known_meters() {
  static const Words words = {"tensor", "allocated", "reserved", "device", "budget", "file", "unknown"};
  return words;
}

const Words& known_parts() {
  static const Words words = {"full-attention",
                              "swa",
                              "mtp-layer",
                              "attention+recurrent",
                              "repeating-layers",
                              "repack",
                              "base",
                              "adapter",
                              "lora-input-gradients",
                              "zero-buckets",
                              "non-torch",
                              "cuda-graphs",
                              "unaccounted",
                              "context",
                              "context+other-processes",
                              "tokens-in-ctx",
                              "nccl-communicator",
                              "nccl-communicators",
                              "nccl-communicator+context",
                              "nccl-fifo",
                              "cublas-workspace",
                              "cublaslt-workspace"};
  return words;
}

const Words& arch_keys() {
  static const Words words = {"params",
                              "params_largest_shard",
                              "largest_layer",
                              "layers",
                              "attn_layers",
                              "full_layers",
                              "swa_layers",
                              "swa_window",
                              "mtp_layers",
                              "hidden",
                              "heads",
                              "kv_heads",
                              "kv_dim",
                              "head_dim",
                              "ffn",
                              "vocab",
                              "tied",
                              "moe",
                              "attention",
                              "kv_lora_rank",
                              "rope_dim",
                              "recurrent",
                              "recurrent_layers",
                              "d_inner",
                              "d_state",
                              "n_group",
                              "d_conv",
                              "gdn_k_heads",
                              "gdn_v_heads",
                              "gdn_head_dim"};
  return words;
}

const Words& setting_keys() {
  static const Words words = {
      // the log and the weights
      "run", "quant", "mix", "file_bpw", "kv_type", "part", "per", "stat", "instant",
      // lengths
      "ctx", "max_len", "prompt", "new_tokens", "batch", "micro_batch", "grad_accum", "seq", "max_seq", "packed",
      "dataset",
      // llama.cpp
      "ubatch", "n_seq", "unified", "flash_attn", "swa_cells", "offload_layers", "cpu_moe", "fit", "split", "mla",
      // machine
      "gpus", "nodes", "gpu", "gpu_mem", "free_mem", "also", "gpu_values",
      // parallelism and sharding
      "tp", "pp", "dp", "cp", "sp", "stage", "pp_schedule", "async_tp", "zero", "zero_init", "offload_optimizer",
      "offload_param", "overlap_comm", "buckets", "fsdp", "limit_all_gathers",
      // training
      "checkpointing", "activation_offload", "precision", "weight_dtype", "adapter_dtype", "fp8", "optimizer",
      "optimizer_in_bwd", "method", "lora_rank", "lora_targets", "trainable", "trainable_embeddings", "chunked_ce",
      "compile",
      // vLLM and the rest
      "util", "max_batched_tokens", "block", "kv_budget", "backend", "graph_sizes", "awq_fused", "use_cache",
      "channels", "image"};
  return words;
}

}  // namespace gpuwright::scorer
