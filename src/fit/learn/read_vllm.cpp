// vLLM's lines: what its profiling run found and the caches it made. Formats: vllm/worker/worker.py (V0),
// vllm/v1/worker/gpu_worker.py, gpu_model_runner.py, vllm/v1/core/kv_cache_utils.py, vllm/engine/llm_engine.py, from
// 0.4 to 0.2x. Every rank prints its own, with its number before the message; a line without one is rank 0's.
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "fit/learn/readers.h"

namespace gpuwright::fit {
namespace {

using Merge = LogBook::Merge;

// "(VllmWorker rank=1 pid=12)", "(Worker_TP1 pid=12)", "(VllmWorkerProcess pid=12)"
int rank_of(std::string_view text) {
  const std::string_view head = text.substr(0, text.find(')'));
  for (const std::string_view marker : {"rank=", "_TP"})
    if (const auto rest = after(head, marker))
      if (const auto rank = scan_integer(*rest); rank && *rank < static_cast<std::int64_t>(LogBook::kMostGpus))
        return static_cast<int>(*rank);
  return 0;
}

// "fp8" and the like, as --format names them; empty for what is the model's own (compressed-tensors says nothing).
std::string_view format_of(std::string_view quantization) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kFormats = {{
      {"fp8", "fp8"},
      {"awq", "awq-int4"},
      {"awq_marlin", "awq-int4"},
      {"gptq", "gptq-int4"},
      {"gptq_marlin", "gptq-int4"},
      {"bitsandbytes", "bnb-nf4"},
      {"mxfp4", "mxfp4"},
      {"modelopt_fp4", "nvfp4"},
  }};
  for (const auto& [theirs, ours] : kFormats)
    if (quantization == theirs) return ours;
  return {};
}

class VllmReader final : public LogReader {
 public:
  void line(std::string_view text, LogBook& book) override {
    if (text.find("LLM engine (v") != std::string_view::npos) engine(text, book);
    if (text.find("non-default args") != std::string_view::npos ||
        text.find("args: Namespace(") != std::string_view::npos)
      settings(text, book);
    if (const auto version = after(text, "vLLM API server version ")) {
      book.begin_run(LogProgram::vllm);
      book.run().version = std::string(version->substr(0, version->find(' ')).substr(0, 32));
    }
    profile(text, book);
    caches(text, book);
    troubles(text, book);
  }

 private:
  // "Initializing a V1 LLM engine (v0.8.5) with config: model='...', ..., max_seq_len=8192, ..."
  static void engine(std::string_view text, LogBook& book) {
    book.begin_run(LogProgram::vllm);
    const std::string_view version = *after(text, "LLM engine (v");
    book.run().version = std::string(version.substr(0, version.find(')')).substr(0, 32));
    settings(text, book);
  }

  static void settings(std::string_view text, LogBook& book) {
    book.claim(LogProgram::vllm);
    for (const std::string_view key : {"model_tag", "model"})
      if (const auto model = python_value(text, key); model && *model != "None" && !model->empty())
        book.run().model_file = std::string(model->substr(0, 1024));
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kIntegers = {{
        {"max_seq_len", "--context"},
        {"max_model_len", "--context"},
        {"tensor_parallel_size", "--tensor-parallel"},
        {"pipeline_parallel_size", "--pipeline-parallel"},
        {"max_num_seqs", "--max-num-seqs"},
        {"max_num_batched_tokens", "--max-num-batched-tokens"},
        {"block_size", "--block-size"},
    }};
    for (const auto& [theirs, ours] : kIntegers)
      if (const auto value = python_value(text, theirs))
        if (const auto number = to_integer(*value); number && *number > 0) book.set(ours, *value);
    if (const auto share = python_value(text, "gpu_memory_utilization"); share && to_number(*share))
      book.set("--gpu-memory-utilization", *share);
    if (python_value(text, "enforce_eager") == "True") book.set("--enforce-eager", "");
    if (const auto type = python_value(text, "kv_cache_dtype"); type && type->starts_with("fp8"))
      book.set("--kv-type", "fp8");
    if (const auto quantization = python_value(text, "quantization"))
      if (const auto format = format_of(*quantization); !format.empty()) book.set("--format", format);
  }

  static void component(std::string_view text, LogBook& book, std::string_view marker, ComponentKind kind) {
    const auto amount = amount_after(text, marker);
    if (!amount) return;
    book.claim(LogProgram::vllm);
    book.component(kind, rank_of(text), *amount, Merge::last);
  }

  static void budget(LogBook& book, Amount amount) {
    book.claim(LogProgram::vllm);
    book.capacity("kv_cache_budget", static_cast<double>(amount.bytes.count), amount.slack);
  }

  static void profile(std::string_view text, LogBook& book) {
    component(text, book, "Model loading took ", ComponentKind::weights);
    component(text, book, "Loading model weights took ", ComponentKind::weights);
    component(text, book, "model weights take ", ComponentKind::weights);
    component(text, book, "PyTorch activation peak memory takes ", ComponentKind::activations);
    component(text, book, "non_torch_memory takes ", ComponentKind::runtime);
    if (text.find("Graph capturing finished") != std::string_view::npos)
      component(text, book, " took ", ComponentKind::graphs);
    const auto total = after(text, "total_gpu_memory (");
    if (const auto amount = total ? scan_amount(*total) : std::nullopt) {
      if (LogGpu* gpu = book.gpu(rank_of(text))) gpu->total = amount->bytes;
      if (const auto share = after(*total, "gpu_memory_utilization ("))
        book.set_once("--gpu-memory-utilization", share->substr(0, share->find(')')));
    }
    // Without the vLLM of the last line: "Chunked prefill is enabled with max_num_batched_tokens=2048."
    if (text.find("Chunked prefill is enabled") != std::string_view::npos)
      if (const auto tokens = python_value(text, "max_num_batched_tokens"))
        if (const auto number = scan_integer(*tokens)) book.set("--max-num-batched-tokens", std::to_string(*number));
  }

  static void caches(std::string_view text, LogBook& book) {
    // Ranks differ a little; the cache is as large as the smallest allows, which rank 0 prints as tokens.
    if (rank_of(text) == 0) {
      if (const auto amount = amount_after(text, "the rest of the memory reserved for KV Cache is "))
        budget(book, *amount);
      if (const auto amount = amount_after(text, "Available KV cache memory: ")) budget(book, *amount);
    }
    for (const std::string_view marker : {"# GPU blocks: ", "# cuda blocks: ", "# CUDA blocks: "})
      if (const auto rest = after(text, marker))
        if (const auto blocks = scan_integer(*rest)) count(book, "kv_cache_blocks", static_cast<double>(*blocks), 0);
    if (const auto rest = after(text, "GPU KV cache size: "); rest && rest->find("tokens") != std::string_view::npos)
      if (const auto tokens = scan_integer(*rest)) count(book, "kv_cache_tokens", static_cast<double>(*tokens), 0);
    if (const auto rest = after(text, "Maximum concurrency for ")) {
      if (const auto tokens = scan_integer(*rest)) book.set_once("--context", std::to_string(*tokens));
      const auto times = after(*rest, "per request: ");
      // Ours are whole sequences.
      if (const auto number = times ? scan_number(*times) : std::nullopt)
        count(book, "max_concurrency", number->value, 1);
    }
  }

  static void count(LogBook& book, std::string_view name, double value, double slack) {
    book.claim(LogProgram::vllm);
    book.capacity(name, value, slack);
  }

  static void troubles(std::string_view text, LogBook& book) {
    if (text.find("No available memory for the cache blocks") != std::string_view::npos) {
      book.claim(LogProgram::vllm);
      book.remark("vLLM found no memory for the cache");
    }
    // "(16.00 GiB KV cache is needed, which is larger than the available KV cache memory (9.54 GiB)"
    const auto at = text.find(" KV cache is needed");
    if (at == std::string_view::npos) return;
    const auto open = text.rfind('(', at);
    const auto need = open == std::string_view::npos ? std::nullopt : scan_amount(text.substr(open + 1));
    if (!need) return;
    book.claim(LogProgram::vllm);
    book.component(ComponentKind::kv_cache, rank_of(text), *need, Merge::last);
    if (const auto length = after(text, "max seq len ("))
      if (const auto tokens = scan_integer(*length)) book.set_once("--context", std::to_string(*tokens));
    if (const auto amount = amount_after(text, "available KV cache memory (")) budget(book, *amount);
  }
};

}  // namespace

std::unique_ptr<LogReader> vllm_reader() {
  return std::make_unique<VllmReader>();
}

}  // namespace gpuwright::fit
