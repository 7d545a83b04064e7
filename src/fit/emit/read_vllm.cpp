// `vllm serve MODEL --option ...`. Options: vllm/engine/arg_utils.py (0.21); dashes and underscores are one to it, and
// token counts may be written 32k (thousands) or 32K (1024).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "fit/emit/command_reader.h"

namespace gpuwright::fit {
namespace {

constexpr std::int64_t kMostTokens = 1'000'000'000;
constexpr std::int64_t kMostGpus = 4'096;

Result<std::int64_t> tokens(CommandReader& words, const CommandOption& option, std::int64_t most) {
  std::string text = GW_TRY(words.value(option));
  constexpr std::string_view kSuffixes = "kKmMgG";
  constexpr std::array<double, 6> kFactors{1e3, 1024, 1e6, 1048576, 1e9, 1073741824};
  double factor = 1;
  const std::size_t suffix = text.empty() ? kSuffixes.npos : kSuffixes.find(text.back());
  if (suffix != kSuffixes.npos) {
    factor = kFactors[suffix];
    text.pop_back();
  }
  const auto number = to_number(text);
  const double value = number ? *number * factor : -1;
  if (value < 1 || value > static_cast<double>(most) || value != static_cast<double>(static_cast<std::int64_t>(value)))
    return words.fault(option, "is not a whole number of at least 1");
  return static_cast<std::int64_t>(value);
}

Status read_cache_type(CommandReader& words, const CommandOption& option, Job& job) {
  const std::string name = GW_TRY(words.value(option));
  if (name == "auto") {
    job.key_type = job.value_type = std::nullopt;
    return {};
  }
  auto type = model::dtype_named(name);
  if (name == "fp8" || name == "fp8_e4m3") type = model::Dtype::f8_e4m3;
  if (name == "fp8_e5m2") type = model::Dtype::f8_e5m2;
  if (!type)
    return words.fault(option, fmt::format("'{}' is not modelled", name),
                       "auto, bfloat16, float16, fp8_e4m3, fp8_e5m2");
  job.key_type = job.value_type = *type;
  return {};
}

bool is_harmless_with_value(std::string_view name) {
  constexpr std::array kNames{"host",
                              "port",
                              "api-key",
                              "served-model-name",
                              "tokenizer",
                              "tokenizer-mode",
                              "seed",
                              "chat-template",
                              "tool-call-parser",
                              "reasoning-parser",
                              "download-dir",
                              "load-format",
                              "revision",
                              "generation-config",
                              "uvicorn-log-level",
                              "distributed-executor-backend",
                              "root-path",
                              "max-log-len",
                              "allowed-origins",
                              "ssl-keyfile",
                              "ssl-certfile"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_harmless_flag(std::string_view name) {
  constexpr std::array kNames{"trust-remote-code",      "enable-auto-tool-choice",    "disable-log-requests",
                              "disable-log-stats",      "enable-prefix-caching",      "no-enable-prefix-caching",
                              "enable-chunked-prefill", "disable-uvicorn-access-log", "async-scheduling"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// True when the option is one of those that shape memory.
Result<bool> read_memory_option(CommandReader& words, const CommandOption& option, std::string_view name, Job& job) {
  if (name == "max-model-len") {
    if (words.peek() != nullptr && *words.peek() == "-1") return words.skip(), true;  // as long as fits: the default
    job.context_tokens = GW_TRY(tokens(words, option, kMostTokens));
  } else if (name == "gpu-memory-utilization") {
    job.vllm.gpu_memory_utilization = GW_TRY(words.number(option, 0.01, 1));
  } else if (name == "max-num-batched-tokens") {
    job.vllm.max_batched_tokens = GW_TRY(tokens(words, option, kMostTokens));
  } else if (name == "max-num-seqs") {
    job.vllm.max_sequences = GW_TRY(tokens(words, option, kMostTokens));
  } else if (name == "block-size") {
    job.vllm.block_size = GW_TRY(words.integer(option, 1, 1'000'000));
  } else if (name == "kv-cache-memory-bytes") {
    job.vllm.kv_budget = Bytes{GW_TRY(tokens(words, option, std::int64_t{1} << 50))};
  } else if (name == "kv-cache-dtype") {
    GW_TRY(read_cache_type(words, option, job));
  } else if (name == "enforce-eager" || name == "no-enforce-eager") {
    job.vllm.enforce_eager = name == "enforce-eager";
  } else if (name == "disable-hybrid-kv-cache-manager") {
    job.vllm.hybrid_kv_manager = false;
  } else {
    return false;
  }
  return true;
}

Result<bool> read_parallel_option(CommandReader& words, const CommandOption& option, std::string_view name, Job& job) {
  if (name == "tensor-parallel-size" || option.name == "-tp")
    job.tensor_parallel = static_cast<int>(GW_TRY(words.integer(option, 1, kMostGpus)));
  else if (name == "pipeline-parallel-size" || option.name == "-pp")
    job.pipeline_parallel = static_cast<int>(GW_TRY(words.integer(option, 1, kMostGpus)));
  else
    return false;
  return true;
}

// --dtype (vllm/config/model.py) and --quantization by the names of formats here; "auto" and what the checkpoint's own
// configuration decides (compressed-tensors, modelopt) say nothing more than the checkpoint does.
std::string weight_format(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kNames{{{"half", "fp16"},
                                                                                  {"float16", "fp16"},
                                                                                  {"bfloat16", "bf16"},
                                                                                  {"float", "fp32"},
                                                                                  {"float32", "fp32"},
                                                                                  {"awq", "awq-int4"},
                                                                                  {"awq_marlin", "awq-int4"},
                                                                                  {"gptq", "gptq-int4"},
                                                                                  {"gptq_marlin", "gptq-int4"},
                                                                                  {"bitsandbytes", "bnb-nf4"},
                                                                                  {"compressed-tensors", "auto"},
                                                                                  {"modelopt", "auto"}}};
  const auto found = std::find_if(kNames.begin(), kNames.end(), [&](const auto& row) { return row.first == name; });
  return found == kNames.end() ? name : std::string(found->second);
}

}  // namespace

Status read_vllm(CommandReader& words, Job& job, ReadConfig& into) {
  job.engine = Engine::vllm;
  while (const auto option = words.next()) {
    if (option->name.empty()) {
      if (!into.model.empty())
        return fail(ErrorCode::bad_input,
                    fmt::format("both '{}' and '{}' stand where the model does", into.model, *option->value));
      into.model = *option->value;
      continue;
    }
    std::string name = option->name.substr(
        option->name.find_first_not_of('-') == std::string::npos ? 0 : option->name.find_first_not_of('-'));
    std::replace(name.begin(), name.end(), '_', '-');
    if (GW_TRY(read_memory_option(words, *option, name, job))) continue;
    if (GW_TRY(read_parallel_option(words, *option, name, job))) continue;
    if (name == "model") {
      into.model = GW_TRY(words.value(*option));
    } else if (name == "dtype" || name == "quantization" || option->name == "-q") {
      const std::string format = weight_format(GW_TRY(words.value(*option)));
      // A quantisation says more about the weights than the type of what is not quantised.
      if (format != "auto" && (name != "dtype" || into.weight_format.empty())) into.weight_format = format;
    } else if (is_harmless_with_value(name)) {
      GW_TRY(words.value(*option));
    } else if (!is_harmless_flag(name)) {
      words.note_unknown(*option, into.notes);
    }
  }
  return {};
}

}  // namespace gpuwright::fit
