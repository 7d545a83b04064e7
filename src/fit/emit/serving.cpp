#include "fit/emit/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/file.h"
#include "base/quote.h"
#include "base/text.h"
#include "fit/engine.h"

namespace gpuwright::fit {
namespace {

using Words = std::vector<std::string>;

template <class T>
void option(Words& words, std::string_view name, const std::optional<T>& value) {
  if (!value) return;
  words.emplace_back(name);
  words.push_back(fmt::format("{}", *value));
}

std::string joined(const Words& words) {
  return shell_command(words) + "\n";
}

Status check_gpus(const Job& job, int gpus) {
  const int used = job.tensor_parallel * job.pipeline_parallel;
  if (gpus > 0 && used != gpus)
    return fail(ErrorCode::bad_input,
                fmt::format("tensor_parallel {} x pipeline_parallel {} is {} GPUs, not {}", job.tensor_parallel,
                            job.pipeline_parallel, used, gpus),
                fmt::format("--tensor-parallel {}", gpus));
  return {};
}

// Weights that have to be made, or found, before the command can run: where they are expected, and the note that says
// so.
std::string place_of(const std::string& model, const ServedWeights& weights, std::string_view ending) {
  const std::string name = model.substr(model.find_last_of('/') + 1);
  return fmt::format("{}-{}{}", name, weights.format.empty() ? "F16" : weights.format, ending);
}

// ---------------------------------------------------------------- vLLM

// What vLLM makes of 16-bit weights while it loads them (docs/features/quantization: fp8, bitsandbytes). Empty:
// nothing.
Words loading_options(std::string_view format) {
  const std::string name = lower(format);
  if (name == "fp32" || name == "f32") return {"--dtype", "float32"};
  if (name == "fp16" || name == "f16") return {"--dtype", "float16"};
  if (name == "bf16") return {"--dtype", "bfloat16"};
  if (name == "fp8") return {"--quantization", "fp8"};
  if (name == "bnb-nf4" || name == "bnb-nf4-dq") return {"--quantization", "bitsandbytes"};
  return {};
}

// Source: vllm/config/cache.py, CacheDType.
Result<std::optional<std::string>> vllm_cache_type(const Job& job) {
  if (!job.key_type && !job.value_type) return std::nullopt;
  if (job.key_type != job.value_type) return fail(ErrorCode::unsupported, "vLLM keeps keys and values in one type");
  switch (*job.key_type) {
    case model::Dtype::bf16:
      return std::string("bfloat16");
    case model::Dtype::f16:
      return std::string("float16");
    case model::Dtype::f8_e4m3:
      return std::string("fp8_e4m3");
    case model::Dtype::f8_e5m2:
      return std::string("fp8_e5m2");
    default:
      return fail(ErrorCode::unsupported,
                  fmt::format("vLLM has no KV cache of type {}", model::traits(*job.key_type).name));
  }
}

Result<Emission> emit_vllm(const std::string& model, const Job& job, int gpus, const ServedWeights& weights) {
  if (job.engine != Engine::vllm)
    return fail(ErrorCode::bad_input, fmt::format("the answer is for {}, not for vLLM", name_of(job.engine)),
                "--engine vllm");
  GW_TRY(check_gpus(job, gpus));
  const Words loading = loading_options(weights.format);
  const bool elsewhere = !weights.format.empty() && loading.empty();
  Words words{"vllm", "serve", elsewhere ? place_of(model, weights, "") : model};
  words.insert(words.end(), loading.begin(), loading.end());
  option(words, "--tensor-parallel-size", std::optional(job.tensor_parallel));
  if (job.pipeline_parallel > 1) option(words, "--pipeline-parallel-size", std::optional(job.pipeline_parallel));
  option(words, "--max-model-len", job.context_tokens);
  option(words, "--max-num-seqs", job.vllm.max_sequences);
  option(words, "--max-num-batched-tokens", job.vllm.max_batched_tokens);
  option(words, "--gpu-memory-utilization", job.vllm.gpu_memory_utilization);
  if (job.vllm.kv_budget) option(words, "--kv-cache-memory-bytes", std::optional(job.vllm.kv_budget->count));
  option(words, "--kv-cache-dtype", GW_TRY(vllm_cache_type(job)));
  option(words, "--block-size", job.vllm.block_size);
  if (job.vllm.enforce_eager) words.emplace_back(*job.vllm.enforce_eager ? "--enforce-eager" : "--no-enforce-eager");
  if (!job.vllm.hybrid_kv_manager) words.emplace_back("--disable-hybrid-kv-cache-manager");
  Emission emission;
  emission.command = joined(words);
  if (elsewhere)
    emission.notes.push_back(
        fmt::format("{} stands for a folder or a repository that holds {} as {}: vLLM does not make that itself.",
                    words[2], model, weights.format));
  if (!job.vllm.mxfp4_backend.empty())
    emission.notes.push_back(
        fmt::format("vLLM chooses the MXFP4 kernel by the GPU; the answer assumed {}.", job.vllm.mxfp4_backend));
  return emission;
}

// ---------------------------------------------------------------- llama.cpp

// More layers than any model has: all of them, the output layer included. Builds before "all" know only numbers.
constexpr std::int64_t kAllLayers = 999;
// ggml-org/llama.cpp #15434: -fa takes on, off or auto.
constexpr std::string_view kFlashAttentionTakesValue = "b6325";

std::string cache_type(model::Dtype type) {
  return lower(model::traits(type).name);
}

bool is_llama_cpp(const Job& job) {
  return job.engine == Engine::llama_cpp || job.engine == Engine::ollama;
}

// A path that exists or looks like one, else a repository of the hub ("org/name", "org/name:Q4_K_M").
bool is_path(const std::string& model) {
  const bool looks = model.front() == '/' || model.front() == '.' || model.front() == '~' ||
                     (model.size() > 5 && lower(model.substr(model.size() - 5)) == ".gguf");
  return looks || std::count(model.begin(), model.end(), '/') != 1 || path_exists(model);
}

void flash_attention(const Job& job, Words& words) {
  if (!job.llama.flash_attention) return;
  const bool on = *job.llama.flash_attention;
  if (version_at_least(job.engine_version, kFlashAttentionTakesValue)) {
    option(words, "-fa", std::optional<std::string>(on ? "on" : "off"));
  } else if (on) {
    words.emplace_back("-fa");
  }
}

// llama.cpp and ollama read GGUF only, and make no other quantisation of it while they load it.
bool needs_gguf(const ServedWeights& weights) {
  return !weights.is_gguf || !weights.format.empty();
}
std::string gguf_note(const std::string& file, const std::string& model, const ServedWeights& weights) {
  return fmt::format(
      "{} is {} as GGUF: convert_hf_to_gguf.py and llama-quantize of llama.cpp make it, or name another.", file,
      model + (weights.format.empty() ? "" : " in " + weights.format));
}

Result<Emission> emit_llama_cpp(const std::string& model, const Job& job, const ServedWeights& weights) {
  if (job.llama.mla_mode) return fail(ErrorCode::unsupported, "-mla is an option of ik_llama.cpp, not of llama.cpp");
  const bool made = needs_gguf(weights);
  const std::string file = made ? place_of(model, weights, ".gguf") : model;
  Words words{"llama-server", made || is_path(model) ? "-m" : "-hf", file};
  option(words, "-c", job.context_tokens);
  option(words, "-np", std::optional(job.sequences));
  option(words, "-ngl", std::optional(job.llama.gpu_layers.value_or(kAllLayers)));
  if (job.llama.cpu_moe_layers > 0) option(words, "--n-cpu-moe", std::optional(job.llama.cpu_moe_layers));
  if (!job.llama.tensor_split.empty())
    option(words, "-ts", std::optional(fmt::format("{}", fmt::join(job.llama.tensor_split, ","))));
  if (job.llama.split_by_rows) option(words, "-sm", std::optional<std::string>("row"));
  option(words, "-ub", job.llama.ubatch);
  flash_attention(job, words);
  if (job.key_type) option(words, "-ctk", std::optional(cache_type(*job.key_type)));
  if (job.value_type) option(words, "-ctv", std::optional(cache_type(*job.value_type)));
  if (job.llama.unified_kv) words.emplace_back("--kv-unified");
  if (job.llama.swa_full) words.emplace_back("--swa-full");
  if (job.llama.kv_on_host) words.emplace_back("--no-kv-offload");
  Emission emission;
  emission.command = joined(words);
  if (made) emission.notes.push_back(gguf_note(file, model, weights));
  if (job.llama.projector) emission.notes.push_back("Name the projector's file with --mmproj.");
  return emission;
}

// ---------------------------------------------------------------- ollama

// The last part of the reference, in the letters that ollama takes for names.
std::string ollama_name(const std::string& model) {
  std::string name;
  for (const char letter : lower(model.substr(model.find_last_of('/') + 1))) {
    const bool good = (std::isalnum(static_cast<unsigned char>(letter)) != 0) || letter == '.' || letter == '_';
    name += good ? letter : '-';
  }
  if (name.size() > 5 && name.ends_with(".gguf")) name.resize(name.size() - 5);
  name.resize(std::min<std::size_t>(name.size(), 60));
  return "gpuwright-" + name;
}

Status check_ollama(const Job& job) {
  const LlamaCppOptions& options = job.llama;
  if (job.key_type != job.value_type)
    return fail(ErrorCode::unsupported, "ollama keeps keys and values in one type (OLLAMA_KV_CACHE_TYPE)");
  if (!options.tensor_split.empty() || options.split_by_rows || options.cpu_moe_layers > 0 || options.kv_on_host ||
      options.swa_full || options.unified_kv || options.mla_mode)
    return fail(ErrorCode::unsupported,
                "ollama places tensors and caches by itself and takes none of tensor split, "
                "row split, experts on the host, caches on the host, full or unified caches",
                "--emit llama.cpp");
  if (job.context_tokens && *job.context_tokens % std::max<std::int64_t>(job.sequences, 1) != 0)
    return fail(ErrorCode::bad_input,
                fmt::format("{} tokens do not divide among {} sequences", *job.context_tokens, job.sequences));
  return {};
}

Result<Emission> emit_ollama(const std::string& model, const Job& job, const ServedWeights& weights) {
  GW_TRY(check_ollama(job));
  const bool made = needs_gguf(weights);
  const std::string from = made ? "./" + place_of(model, weights, ".gguf") : is_path(model) ? model : "hf.co/" + model;
  std::string file = fmt::format("FROM {}\n", from);
  if (job.context_tokens)
    file += fmt::format("PARAMETER num_ctx {}\n", *job.context_tokens / std::max<std::int64_t>(job.sequences, 1));
  file += fmt::format("PARAMETER num_gpu {}\n", job.llama.gpu_layers.value_or(kAllLayers));
  if (job.llama.ubatch) file += fmt::format("PARAMETER num_batch {}\n", *job.llama.ubatch);
  Emission emission;
  emission.files.push_back({"Modelfile", std::move(file)});
  std::string server = fmt::format("OLLAMA_NUM_PARALLEL={}", job.sequences);
  if (job.llama.flash_attention)
    server += fmt::format(" OLLAMA_FLASH_ATTENTION={}", *job.llama.flash_attention ? 1 : 0);
  if (job.key_type) server += fmt::format(" OLLAMA_KV_CACHE_TYPE={}", cache_type(*job.key_type));
  const std::string name = ollama_name(model);
  emission.command = fmt::format("{} ollama serve\nollama create {} -f Modelfile\nollama run {}\n", server, name, name);
  if (made) emission.notes.push_back(gguf_note(from, model, weights));
  emission.notes.push_back("The variables belong to the server: set them where `ollama serve` starts (its service).");
  return emission;
}

}  // namespace

Result<Emission> emit_serving(EmitTarget target, const std::string& model, const Job& job, int gpus,
                              const ServedWeights& weights) {
  if (target == EmitTarget::vllm) return emit_vllm(model, job, gpus, weights);
  if (!is_llama_cpp(job))
    return fail(ErrorCode::bad_input,
                fmt::format("the answer is for {}, not for {}", name_of(job.engine), name_of(target)),
                fmt::format("--engine {}", name_of(target)));
  return target == EmitTarget::ollama ? emit_ollama(model, job, weights) : emit_llama_cpp(model, job, weights);
}

}  // namespace gpuwright::fit
