// What is asked of the GPUs: this model, served by that engine, this way. Options that an engine does not have are
// ignored by it; a value that was not given is the engine's own default (of the named version), never ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "fit/estimate.h"
#include "model/dtype.h"

namespace gpuwright::fit {

enum class Engine : std::uint8_t { llama_cpp, ollama, vllm, sglang, transformers };

// llama.cpp and ollama. Names are those of llama-server's own options.
struct LlamaCppOptions {
  std::optional<std::int64_t> gpu_layers;  // -ngl, the output layer counts as one; not given = all
  std::vector<double> tensor_split;        // -ts, relative shares; empty = by free memory
  bool split_by_rows = false;              // -sm row
  std::optional<std::int64_t> ubatch;      // -ub, default 512
  std::optional<bool> flash_attention;     // -fa
  bool unified_kv = false;                 // --kv-unified: one cache for all sequences
  bool swa_full = false;                   // --swa-full
  bool kv_on_host = false;                 // --no-kv-offload
  std::int64_t cpu_moe_layers = 0;         // --n-cpu-moe: experts of the first N layers stay on the host
  std::optional<int> mla_mode;             // ik_llama.cpp -mla
  std::optional<Bytes> projector;          // mmproj: bytes of its weights
  std::int64_t speculative_tokens = 0;     // MTP or draft rollback copies of recurrent state
};

struct VllmOptions {
  std::optional<double> gpu_memory_utilization;    // share of total memory, default 0.9 (0.92 from 0.21 on)
  std::optional<std::int64_t> max_batched_tokens;  // max_num_batched_tokens
  std::optional<std::int64_t> max_sequences;       // max_num_seqs
  std::optional<std::int64_t> block_size;          // tokens
  std::optional<bool> enforce_eager;               // no CUDA graphs
  bool hybrid_kv_manager = true;
  std::optional<Bytes> kv_budget;  // as a log printed it: then blocks follow without any estimate (sglang too)
  std::string mxfp4_backend;       // kernel of MXFP4 experts: "marlin" pads them, others less; empty = not told
};

struct SglangOptions {
  std::optional<double> mem_fraction_static;         // --mem-fraction-static
  std::optional<std::int64_t> chunked_prefill_size;  // --chunked-prefill-size
  std::optional<std::int64_t> max_running_requests;  // --max-running-requests
};

struct TransformersOptions {
  std::string library = "transformers";       // transformers; litgpt (generate: fixed cache, quantised output head)
  std::optional<std::int64_t> prefill_chunk;  // prefill_chunk_size; not given: see engines/transformers.cpp
  std::string attention;                      // eager, sdpa, flash_attention_2; empty = the model's default
  bool last_token_logits = true;              // generate() keeps only the last position's logits since 4.45
};

// What a run on this machine taught about one part of an engine's memory on one kind of GPU; see learn/calibration.h.
struct Correction {
  Engine engine = Engine::llama_cpp;
  std::string gpu;  // as Target::name, case ignored
  ComponentKind kind = ComponentKind::runtime;
  double ratio = 1;
  Bytes offset;  // where this is not 0 the ratio is 1
  std::string date, source;
};

struct Job {
  Engine engine = Engine::llama_cpp;
  std::string engine_version;  // "b4477", "0.21.0"; empty = newest that the constants know

  // Tokens. llama.cpp: all sequences together, as -c is; each has an equal share. ollama (num_ctx), vLLM and sglang
  // (max_model_len): per sequence. transformers: prompt and new tokens of each sequence; if only context_tokens is
  // given, it is prompt + new with one new token.
  std::optional<std::int64_t> context_tokens;
  std::optional<std::int64_t> prompt_tokens;
  std::optional<std::int64_t> new_tokens;
  std::int64_t sequences = 1;  // in flight at once: batch size, --parallel, OLLAMA_NUM_PARALLEL

  std::optional<model::Dtype> key_type, value_type;  // of the KV cache; not given = the engine's default

  int tensor_parallel = 1;
  int pipeline_parallel = 1;

  LlamaCppOptions llama;
  VllmOptions vllm;
  SglangOptions sglang;
  TransformersOptions transformers;

  Bytes reserve;  // kept free on every GPU for something else (desktop, another process)

  std::vector<Correction> corrections;  // of any engine and GPU: those that concern this job are applied
};

// "vllm@0.21" -> engine and version; unknown names suggest the nearest. Aliases come from data/engines.toml.
struct EngineChoice {
  Engine engine = Engine::llama_cpp;
  std::string version;
};
Result<EngineChoice> engine_named(std::string_view text);
std::string_view name_of(Engine engine);
std::vector<std::string> engine_names();

}  // namespace gpuwright::fit
