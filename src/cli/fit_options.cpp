// The options of `fit`, grouped by the engine they belong to.
#include <algorithm>

#include "cli/fit_emit.h"
#include "cli/fit_log.h"
#include "cli/fit_request.h"
#include "cli/fit_table.h"
#include "cli/fit_train.h"

namespace gpuwright::cli {
namespace {

// What the engines themselves call it.
struct Alias {
  std::string_view option;
  std::vector<std::string> names;
};
const std::vector<Alias> kAliases = {
    {"--context", {"--ctx-size", "--max-model-len", "--context-length"}},
    {"--batch", {"--parallel"}},
    {"--format", {"--quantization"}},
    {"--kv-type", {"--kv-cache-dtype"}},
    {"--key-type", {"--cache-type-k"}},
    {"--value-type", {"--cache-type-v"}},
    {"--gpu-layers", {"--n-gpu-layers"}},
    {"--ubatch", {"--ubatch-size"}},
    {"--tensor-parallel", {"--tensor-parallel-size", "--tp-size"}},
    {"--pipeline-parallel", {"--pipeline-parallel-size", "--pp-size"}},
};

}  // namespace

std::vector<Option> fit_options() {
  const auto option = [](std::string name, std::string short_name, std::string value, std::string help,
                         std::string group, std::vector<std::string> choices = {}) {
    Option result;
    result.name = std::move(name);
    result.short_name = std::move(short_name);
    result.value = std::move(value);
    result.help = std::move(help);
    result.group = std::move(group);
    result.choices = std::move(choices);
    return result;
  };
  const std::string gpus = "Where", how = "How", question = "Question", llama(kLlamaOptions), vllm(kVllmOptions),
                    torch(kTorchOptions);
  std::vector<Option> options = {
      option("--gpu", "-g", "GPU",
             "a GPU of the catalogue, NAMExN for several, NAME:PROFILE for a MIG slice, or a size (24GiB)", gpus),
      option("--reserve", "", "SIZE", "memory kept free on every GPU", gpus),
      option("--tensor-parallel", "", "N", "split every layer over N GPUs (default: all that are named)", gpus),
      option("--pipeline-parallel", "", "N", "split the layers over N groups of GPUs", gpus),

      option("--engine", "-e", "ENGINE[@VERSION]",
             "llama.cpp, ollama, vllm, sglang or transformers (default: llama.cpp for GGUF, transformers for what vllm "
             "refuses, else vllm)",
             how),
      option("--context", "-c", "TOKENS", "context of a sequence; for llama.cpp of all sequences together", how),
      option("--prompt", "", "TOKENS", "tokens of the prompt (transformers)", how),
      option("--new", "", "TOKENS", "tokens to generate (transformers)", how),
      option("--batch", "-b", "N", "sequences at once (default 1)", how),
      option("--format", "-f", "FORMAT",
             "weights in this format instead of their own: Q4_K_M, bnb-nf4, fp8, awq-int4, ...", how),
      option("--kv-type", "", "TYPE", "storage type of keys and values: f16, bf16, fp8, q8_0, ...", how),
      option("--key-type", "", "TYPE", "storage type of keys", how),
      option("--value-type", "", "TYPE", "storage type of values", how),
      option("--upper-bound", "", "", "price an unknown architecture as full attention instead of refusing it", how),
      option("--variant", "", "NAME", "of a repository with several quantisations, this one", how),

      option("--max", "", "WHAT", "the largest context, batch, number of GPU layers or (training) sequence that fits",
             question, {"context", "batch", "layers", "sequence"}),
      option("--smallest-gpu", "", "", "the smallest GPUs of the catalogue that hold it", question),
      option("--among", "", "CONDITION",
             "candidates of --smallest-gpu, as 'gpuwright gpus --filter' takes them (default: boards, which leaves out "
             "laptops, Macs and modules; for training those of NVIDIA)",
             question),
      option("--strict", "", "", "treat a tight fit as no", question),
      option("--explain", "", "", "print each formula with its numbers and source", question),

      option("--gpu-layers", "", "N",
             "layers on the GPUs, counted from the last; the output layer is one (default all)", llama),
      option("--ubatch", "", "TOKENS", "physical batch (default 512)", llama),
      option("--flash-attn", "", "on|off", "flash attention", llama, {"on", "off", "auto"}),
      option("--tensor-split", "", "A,B,...", "shares of the GPUs", llama),
      option("--split-mode", "", "MODE", "layer or row", llama, {"layer", "row"}),
      option("--kv-unified", "", "", "one cache for all sequences", llama),
      option("--swa-full", "", "", "full-length cache for sliding-window layers", llama),
      option("--no-kv-offload", "", "", "keep the KV cache in host memory", llama),
      option("--n-cpu-moe", "", "N", "experts of the first N layers stay on the host", llama),
      option("--mmproj", "", "FILE", "vision projector", llama),
      option("--mla", "", "MODE", "ik_llama.cpp's -mla", llama),

      option("--gpu-memory-utilization", "", "SHARE", "share of each GPU that the engine takes", vllm),
      option("--max-num-batched-tokens", "", "TOKENS", "tokens scheduled in one step", vllm),
      option("--max-num-seqs", "", "N", "sequences scheduled at once", vllm),
      option("--block-size", "", "TOKENS", "tokens of a cache block", vllm),
      option("--enforce-eager", "", "", "no CUDA graphs", vllm),
      option("--kv-budget", "", "SIZE", "memory for the cache as a log printed it", vllm),

      option("--attention", "", "KERNEL", "attention implementation", torch, {"eager", "sdpa", "flash_attention_2"}),
      option("--all-logits", "", "", "logits of every prompt position are kept", torch),
  };
  options[0].repeated = true;
  for (Option& table : table_options()) options.push_back(std::move(table));
  for (Option& training : training_options()) options.push_back(std::move(training));
  for (Option& configuration : emit_options()) options.push_back(std::move(configuration));
  for (Option& learning : learn_options()) options.push_back(std::move(learning));
  for (const Alias& alias : kAliases) {
    const auto named =
        std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.name == alias.option; });
    if (named != options.end()) named->aliases = alias.names;
  }
  return options;
}

}  // namespace gpuwright::cli
