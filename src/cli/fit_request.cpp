#include "cli/fit_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "cli/fit_log.h"
#include "cli/fit_table.h"
#include "cli/fit_train.h"
#include "fit/engine.h"
#include "fit/learn/calibration.h"
#include "model/load.h"
#include "model/quantize.h"

namespace gpuwright::cli {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;
constexpr int kMostGpus = 1024;

Result<std::optional<model::Dtype>> cache_type(const Arguments& arguments, std::string_view option) {
  const auto text = arguments.value(option);
  if (!text) return std::nullopt;
  const auto dtype = model::dtype_named(*text);
  if (dtype && *dtype != model::Dtype::unknown) return dtype;
  return fail(ErrorCode::bad_input, fmt::format("{} {}: no such storage type", option, *text),
              "types: f32, f16, bf16, fp8, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl");
}

Result<std::optional<bool>> on_or_off(const Arguments& arguments, std::string_view option) {
  const auto text = arguments.value(option);
  if (!text || *text == "auto") return std::nullopt;
  if (*text == "on" || *text == "1" || *text == "true") return true;
  if (*text == "off" || *text == "0" || *text == "false") return false;
  return fail(ErrorCode::bad_input, fmt::format("{} {}: write on or off", option, *text));
}

Result<std::optional<Bytes>> size_of(const Arguments& arguments, std::string_view option) {
  const auto text = arguments.value(option);
  if (!text) return std::nullopt;
  return GW_TRY(parse_bytes(*text));
}

Result<std::vector<double>> shares(const Arguments& arguments, std::string_view option) {
  std::vector<double> values;
  const auto text = arguments.value(option);
  if (!text) return values;
  for (const std::string_view part : split(*text, ',')) {
    const auto value = to_number(trim(part));
    if (!value || *value < 0)
      return fail(ErrorCode::bad_input, fmt::format("{} {}: write shares such as 3,1", option, *text));
    values.push_back(*value);
  }
  return values;
}

Result<fit::LlamaCppOptions> llama_options(const Arguments& arguments) {
  fit::LlamaCppOptions options;
  if (arguments.value("--gpu-layers") != "all")
    options.gpu_layers = GW_TRY(arguments.integer("--gpu-layers", 0, 100000));
  options.tensor_split = GW_TRY(shares(arguments, "--tensor-split"));
  options.split_by_rows = arguments.value("--split-mode") == "row";
  options.ubatch = GW_TRY(arguments.integer("--ubatch", 1, 1 << 20));
  options.flash_attention = GW_TRY(on_or_off(arguments, "--flash-attn"));
  options.unified_kv = arguments.has("--kv-unified");
  options.swa_full = arguments.has("--swa-full");
  options.kv_on_host = arguments.has("--no-kv-offload");
  options.cpu_moe_layers = GW_TRY(arguments.integer("--n-cpu-moe", 0, 100000)).value_or(0);
  if (const auto mode = GW_TRY(arguments.integer("--mla", 0, 3))) options.mla_mode = static_cast<int>(*mode);
  if (const auto projector = arguments.value("--mmproj"))
    options.projector = Bytes{GW_TRY(open_file(*projector))->size()};
  return options;
}

Result<fit::VllmOptions> vllm_options(const Arguments& arguments) {
  fit::VllmOptions options;
  options.gpu_memory_utilization = GW_TRY(arguments.number("--gpu-memory-utilization", 0.01, 1.0));
  options.max_batched_tokens = GW_TRY(arguments.integer("--max-num-batched-tokens", 1, 1 << 24));
  options.max_sequences = GW_TRY(arguments.integer("--max-num-seqs", 1, 1 << 20));
  options.block_size = GW_TRY(arguments.integer("--block-size", 1, 1 << 16));
  if (arguments.has("--enforce-eager")) options.enforce_eager = true;
  options.kv_budget = GW_TRY(size_of(arguments, "--kv-budget"));
  return options;
}

Result<fit::Job> read_job(const Arguments& arguments, const model::Model& model) {
  fit::Job job;
  // The engine that people run such files with: GGUF is llama.cpp's format, the rest is served by vLLM.
  const std::string engine =
      arguments.value("--engine").value_or(model.source == model::Source::gguf ? "llama.cpp" : "vllm");
  const fit::EngineChoice choice = GW_TRY(fit::engine_named(engine));
  job.engine = choice.engine;
  job.engine_version = choice.version;
  job.context_tokens = GW_TRY(arguments.integer("--context", 1, kMostTokens));
  job.prompt_tokens = GW_TRY(arguments.integer("--prompt", 1, kMostTokens));
  job.new_tokens = GW_TRY(arguments.integer("--new", 1, kMostTokens));
  job.sequences = GW_TRY(arguments.integer("--batch", 1, 1 << 20)).value_or(1);
  const auto both = GW_TRY(cache_type(arguments, "--kv-type"));
  job.key_type = GW_TRY(cache_type(arguments, "--key-type"));
  job.value_type = GW_TRY(cache_type(arguments, "--value-type"));
  if (!job.key_type) job.key_type = both;
  if (!job.value_type) job.value_type = both;
  job.tensor_parallel = static_cast<int>(GW_TRY(arguments.integer("--tensor-parallel", 1, kMostGpus)).value_or(1));
  job.pipeline_parallel = static_cast<int>(GW_TRY(arguments.integer("--pipeline-parallel", 1, kMostGpus)).value_or(1));
  job.reserve = GW_TRY(size_of(arguments, "--reserve")).value_or(Bytes{});
  job.llama = GW_TRY(llama_options(arguments));
  job.vllm = GW_TRY(vllm_options(arguments));
  if (const auto attention = arguments.value("--attention")) job.transformers.attention = *attention;
  job.transformers.last_token_logits = !arguments.has("--all-logits");
  return job;
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const Option& option : fit_options()) names.push_back(option.name.substr(2));
  return names;
}

// "llama-3.1-8b,context=8192,format=Q4_K_M": the reference, and settings of this model alone laid over the common ones.
Result<std::pair<std::string, Arguments>> split_item(const std::string& word, const Arguments& common) {
  if (path_exists(word) || word.find("://") != std::string::npos) return std::pair(word, common);
  const auto parts = split(word, ',');
  Arguments settings = common;
  const std::vector<std::string> known = setting_names();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto equals = parts[i].find('=');
    const std::string name(trim(parts[i].substr(0, equals)));
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const auto nearest = nearest_name(name, known);
      return fail(ErrorCode::bad_input, fmt::format("{}: \"{}\" is no setting of a model", word, name),
                  nearest ? fmt::format("did you mean {}?", *nearest) : "write NAME,setting=value,...");
    }
    if (equals == std::string_view::npos)
      settings.mark("--" + name);
    else
      settings.add("--" + name, std::string(trim(parts[i].substr(equals + 1))));
  }
  return std::pair(std::string(parts[0]), std::move(settings));
}

// ollama's library is quantised by rules of its own where llama.cpp's file types are concerned.
Result<model::Model> in_format(const model::Model& model, const std::string& format, const Arguments& settings) {
  const auto engine = fit::engine_named(settings.value("--engine").value_or("vllm"));
  if (engine && engine->engine == fit::Engine::ollama)
    if (auto converted = model::with_weight_format(model, format + "@ollama")) return converted;
  return model::with_weight_format(model, format);
}

Result<FitItem> read_item(const std::string& word, const Arguments& common) {
  const auto [reference, settings] = GW_TRY(split_item(word, common));
  model::LoadOptions options;
  options.upper_bound = settings.has("--upper-bound");
  options.variant = settings.value("--variant").value_or("");
  FitItem item{reference, GW_TRY(model::load(reference, options)), {}, {}};
  if (const auto format = settings.value("--format")) item.model = GW_TRY(in_format(item.model, *format, settings));
  if (wants_training(settings))
    item.training = GW_TRY(read_training_job(settings));
  else
    item.job = GW_TRY(read_job(settings, item.model));
  return item;
}

// "h100x8" -> ("h100", 8). The x must follow a name and precede digits only, so that "mi300x" stays whole.
std::pair<std::string_view, std::int64_t> split_count(std::string_view text) {
  const auto at = text.find_last_of("xX*");
  if (at == std::string_view::npos || at == 0) return {text, 1};
  const auto count = to_integer(trim(text.substr(at + 1)));
  if (!count) return {text, 1};
  return {trim(text.substr(0, at)), *count};
}

Result<fit::Target> target_named(std::string_view name, const catalog::Catalog& catalog) {
  if (!name.empty() && name[0] >= '0' && name[0] <= '9')
    if (const auto size = parse_bytes(name); size && size->count >= (1 << 20))
      return fit::Target{fmt::format("a GPU with {}", to_string(*size)), *size, *size, "", false};
  const auto colon = name.find(':');
  const catalog::Accelerator* accelerator = GW_TRY(catalog.find(name.substr(0, colon)));
  if (colon == std::string_view::npos) return fit::target_from(*accelerator);
  return fit::mig_target_from(*accelerator, name.substr(colon + 1));
}

std::optional<fit::Quantity> quantity_named(const std::optional<std::string>& name) {
  if (name == "context") return fit::Quantity::context;
  if (name == "batch") return fit::Quantity::batch;
  if (name == "layers") return fit::Quantity::layers;
  if (name == "sequence") return fit::Quantity::sequence;
  return std::nullopt;
}

// GPUs that tensor or pipeline parallelism asks for when the user wrote one name for all of them.
void repeat_for_parallelism(FitRequest& request) {
  const FitItem& item = request.items.front();
  const auto wanted = item.training ? static_cast<std::size_t>(gpus_wanted(*item.training))
                                    : static_cast<std::size_t>(item.job.tensor_parallel) *
                                          static_cast<std::size_t>(item.job.pipeline_parallel);
  request.gpu_count = std::max(request.gpu_count, static_cast<int>(wanted));
  if (request.targets.size() == 1 && wanted > 1 && wanted <= kMostGpus)
    request.targets.resize(wanted, request.targets[0]);
}

// Engines that split a model only by tensor parallelism use all the GPUs that were named.
void parallelism_from_gpus(FitRequest& request) {
  for (FitItem& item : request.items) {
    if (item.training) continue;
    const bool by_tensor = item.job.engine == fit::Engine::vllm || item.job.engine == fit::Engine::sglang;
    if (by_tensor && item.job.tensor_parallel * item.job.pipeline_parallel == 1 && request.targets.size() > 1)
      item.job.tensor_parallel = static_cast<int>(request.targets.size());
  }
}

// Data parallelism over the GPUs that were named, the strategy, and what training cannot do.
Status finish_training(FitRequest& request, const Arguments& arguments) {
  FitItem& item = request.items.front();
  if (!item.training) {
    if (arguments.has("--strategy"))
      return fail(ErrorCode::bad_input, "--strategy is about training", "say how: --train full|lora|qlora");
    return {};
  }
  if (request.items.size() > 1) return fail(ErrorCode::bad_input, "--train takes one model");
  take_gpus(*item.training, arguments.has("--data-parallel"), request.targets.size());
  request.gpu_count = std::max(request.gpu_count, static_cast<int>(gpus_wanted(*item.training)));
  request.strategy = GW_TRY(read_strategy(arguments, *item.training, request.targets.size()));
  if (request.strategy && request.targets.empty())
    return fail(ErrorCode::bad_input, "--strategy needs GPUs", "name them with --gpu");
  if (request.strategy && request.maximise)
    return fail(ErrorCode::bad_input, "--strategy and --max exclude each other");
  return {};
}

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
  const std::string gpus = "Where", how = "How", question = "Question", llama = "llama.cpp and ollama",
                    vllm = "vLLM and SGLang", torch = "transformers";
  std::vector<Option> options = {
      option("--gpu", "-g", "GPU",
             "a GPU of the catalogue, NAMExN for several, NAME:PROFILE for a MIG slice, or a size (24GiB)", gpus),
      option("--reserve", "", "SIZE", "memory kept free on every GPU", gpus),
      option("--tensor-parallel", "", "N", "split every layer over N GPUs (default: all that are named)", gpus),
      option("--pipeline-parallel", "", "N", "split the layers over N groups of GPUs", gpus),

      option("--engine", "-e", "ENGINE[@VERSION]",
             "llama.cpp, ollama, vllm, sglang or transformers (default: llama.cpp for GGUF, else vllm)", how),
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
  for (Option& learning : learn_options()) options.push_back(std::move(learning));
  return options;
}

Result<std::vector<fit::Target>> targets_named(std::string_view text, const catalog::Catalog& catalog) {
  if (trim(text) == "here") return targets_here(catalog);
  auto [name, count] = split_count(trim(text));
  // A whole name that is in the catalogue wins over NAMExN.
  if (count != 1 && catalog.find(trim(text))) name = trim(text), count = 1;
  if (count < 1 || count > kMostGpus)
    return fail(ErrorCode::bad_input, fmt::format("{}: between 1 and {} GPUs", text, kMostGpus));
  const fit::Target target = GW_TRY(target_named(name, catalog));
  return std::vector<fit::Target>(static_cast<std::size_t>(count), target);
}

Result<FitRequest> read_fit_request(const Arguments& arguments, const catalog::Catalog& catalog) {
  FitRequest request;
  for (const std::string& name : arguments.values("--gpu"))
    for (fit::Target& target : GW_TRY(targets_named(name, catalog))) request.targets.push_back(std::move(target));
  if (arguments.has("--measure"))
    for (fit::Target& target : GW_TRY(targets_here(catalog))) request.targets.push_back(std::move(target));
  for (const std::string& word : arguments.values("MODEL")) request.items.push_back(GW_TRY(read_item(word, arguments)));
  request.maximise = quantity_named(arguments.value("--max"));
  request.strict = arguments.has("--strict");
  request.explain = arguments.has("--explain");
  request.smallest_gpu = arguments.has("--smallest-gpu") || request.targets.empty();
  repeat_for_parallelism(request);
  parallelism_from_gpus(request);
  GW_TRY(finish_training(request, arguments));
  const auto corrections = GW_TRY(fit::load_corrections(fit::calibration_path()));
  for (FitItem& item : request.items) item.job.corrections = corrections;
  if (request.items.size() > 1 && (request.maximise || request.smallest_gpu))
    return fail(ErrorCode::bad_input, "--max and --smallest-gpu take one model", "name a GPU with --gpu");
  if (request.maximise && request.targets.empty())
    return fail(ErrorCode::bad_input, "--max needs a GPU", "name one with --gpu");
  return request;
}

}  // namespace gpuwright::cli
