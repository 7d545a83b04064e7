#include "cli/fit_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "cli/fit_emit.h"
#include "cli/fit_log.h"
#include "cli/fit_table.h"
#include "cli/fit_train.h"
#include "fit/engine.h"
#include "fit/learn/calibration.h"
#include "fit/support.h"
#include "fit/training/adapters.h"
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

template <class T, class U>
void lay(std::optional<T> said, U& over) {
  if (said) over = static_cast<U>(*said);
}

template <class T>
void lay(std::optional<T> said, std::optional<T>& over) {
  if (said) over = std::move(said);
}

Status lay_llama_options(const Arguments& arguments, fit::LlamaCppOptions& options) {
  if (arguments.value("--gpu-layers") == "all")
    options.gpu_layers.reset();
  else
    lay(GW_TRY(arguments.integer("--gpu-layers", 0, 100000)), options.gpu_layers);
  if (arguments.has("--tensor-split")) options.tensor_split = GW_TRY(shares(arguments, "--tensor-split"));
  if (const auto mode = arguments.value("--split-mode")) options.split_by_rows = mode == "row";
  lay(GW_TRY(arguments.integer("--ubatch", 1, 1 << 20)), options.ubatch);
  if (arguments.has("--flash-attn")) options.flash_attention = GW_TRY(on_or_off(arguments, "--flash-attn"));
  options.unified_kv = options.unified_kv || arguments.has("--kv-unified");
  options.swa_full = options.swa_full || arguments.has("--swa-full");
  options.kv_on_host = options.kv_on_host || arguments.has("--no-kv-offload");
  lay(GW_TRY(arguments.integer("--n-cpu-moe", 0, 100000)), options.cpu_moe_layers);
  if (const auto mode = GW_TRY(arguments.integer("--mla", 0, 3))) options.mla_mode = static_cast<int>(*mode);
  if (const auto projector = arguments.value("--mmproj"))
    options.projector = Bytes{GW_TRY(open_file(*projector))->size()};
  return {};
}

Status lay_vllm_options(const Arguments& arguments, fit::VllmOptions& options) {
  lay(GW_TRY(arguments.number("--gpu-memory-utilization", 0.01, 1.0)), options.gpu_memory_utilization);
  lay(GW_TRY(arguments.integer("--max-num-batched-tokens", 1, 1 << 24)), options.max_batched_tokens);
  lay(GW_TRY(arguments.integer("--max-num-seqs", 1, 1 << 20)), options.max_sequences);
  lay(GW_TRY(arguments.integer("--block-size", 1, 1 << 16)), options.block_size);
  if (arguments.has("--enforce-eager")) options.enforce_eager = true;
  lay(GW_TRY(size_of(arguments, "--kv-budget")), options.kv_budget);
  return {};
}

Status lay_cache_types(const Arguments& arguments, fit::Job& job) {
  const auto both = GW_TRY(cache_type(arguments, "--kv-type"));
  const auto keys = GW_TRY(cache_type(arguments, "--key-type")), values = GW_TRY(cache_type(arguments, "--value-type"));
  lay(keys ? keys : both, job.key_type);
  lay(values ? values : both, job.value_type);
  return {};
}

// The job with what the words say in place of what it says.
Result<fit::Job> lay_over(const Arguments& arguments, fit::Job job) {
  if (const auto engine = arguments.value("--engine")) {
    const fit::EngineChoice choice = GW_TRY(fit::engine_named(*engine));
    job.engine = choice.engine;
    job.engine_version = choice.version;
  }
  lay(GW_TRY(arguments.integer("--context", 1, kMostTokens)), job.context_tokens);
  lay(GW_TRY(arguments.integer("--prompt", 1, kMostTokens)), job.prompt_tokens);
  lay(GW_TRY(arguments.integer("--new", 1, kMostTokens)), job.new_tokens);
  lay(GW_TRY(arguments.integer("--batch", 1, 1 << 20)), job.sequences);
  GW_TRY(lay_cache_types(arguments, job));
  lay(GW_TRY(arguments.integer("--tensor-parallel", 1, kMostGpus)), job.tensor_parallel);
  lay(GW_TRY(arguments.integer("--pipeline-parallel", 1, kMostGpus)), job.pipeline_parallel);
  lay(GW_TRY(size_of(arguments, "--reserve")), job.reserve);
  GW_TRY(lay_llama_options(arguments, job.llama));
  GW_TRY(lay_vllm_options(arguments, job.vllm));
  lay(arguments.value("--attention"), job.transformers.attention);
  if (arguments.has("--all-logits")) job.transformers.last_token_logits = false;
  return job;
}

Result<fit::Job> read_job(const Arguments& arguments, const model::Model& model) {
  fit::Job job;
  job.engine = fit::usual_engine(model);
  return lay_over(arguments, std::move(job));
}

// What one model may have for itself: not the GPUs, the question, or files to write.
std::vector<std::string> setting_names() {
  constexpr std::array<std::string_view, 3> kOfTheWhole = {"Question", "Configuration files", "Learn from a run"};
  constexpr std::array<std::string_view, 5> kNamesOfTheWhole = {"--gpu", "--measure", "--strategy", "--global-batch",
                                                                "--allow"};
  std::vector<std::string> names;
  for (const Option& option : fit_options())
    if (std::find(kOfTheWhole.begin(), kOfTheWhole.end(), option.group) == kOfTheWhole.end() &&
        std::find(kNamesOfTheWhole.begin(), kNamesOfTheWhole.end(), option.name) == kNamesOfTheWhole.end())
      names.push_back(option.name.substr(2));
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

Status convert(FitItem& item, const std::string& format, const Arguments& settings) {
  const std::string stored = item.model.weight_format;
  item.model = GW_TRY(in_format(item.model, format, settings));
  if (lower(item.model.weight_format) != lower(stored)) item.converted_to = item.model.weight_format;
  return {};
}

Result<FitItem> read_item(const std::string& word, const Arguments& common) {
  const auto [reference, settings] = GW_TRY(split_item(word, common));
  model::LoadOptions options;
  options.upper_bound = settings.has("--upper-bound");
  options.variant = settings.value("--variant").value_or("");
  FitItem item{reference, GW_TRY(model::load(reference, options)), {}, {}};
  for (const std::string& name : setting_names())
    if (settings.has("--" + name) && !common.has("--" + name)) item.own_options.push_back("--" + name);
  if (const auto format = settings.value("--format")) GW_TRY(convert(item, *format, settings));
  if (wants_training(settings))
    item.training = GW_TRY(read_training_job(settings));
  else
    item.job = GW_TRY(read_job(settings, item.model));
  return item;
}

// The model and job of --config; MODEL, when it is given too, is the model that the files leave unnamed.
Result<FitItem> item_of_config(const fit::ReadConfig& config, const Arguments& arguments, FitRequest& request) {
  const std::string reference = arguments.value("MODEL").value_or(config.model);
  if (reference.empty())
    return fail(ErrorCode::bad_input, "the configuration names no model", "name it: gpuwright fit MODEL --config FILE");
  model::LoadOptions options;
  options.upper_bound = arguments.has("--upper-bound");
  options.variant = arguments.value("--variant").value_or(config.variant);
  auto model = model::load(reference, options);
  if (!model && !arguments.has("MODEL")) {
    Error error = model.error();
    const bool of_hub = std::count(reference.begin(), reference.end(), '/') == 1 && reference.front() != '.';
    error.hint = fmt::format("the file names it; write gpuwright fit {} --config {}",
                             of_hub ? "hf://" + reference : "MODEL", *arguments.value("--config"));
    return tl::unexpected(std::move(error));
  }
  if (!model) return tl::unexpected(model.error());
  FitItem item{reference, std::move(*model), {}, config.training};
  // The type of what is not quantised says nothing about weights that are stored quantised.
  const bool plain =
      item.model.weight_format == "BF16" || item.model.weight_format == "F16" || item.model.weight_format == "F32";
  const auto said = arguments.value("--format");
  const std::string format = said ? *said : plain ? config.weight_format : "";
  if (!format.empty()) GW_TRY(convert(item, format, arguments));
  if (config.serving) item.job = GW_TRY(lay_over(arguments, *config.serving));
  for (const fit::ConfigNote& note : config.notes) request.notes.push_back(note.sentence());
  return item;
}

// Which accelerators --smallest-gpu looks at. The training engines' overheads are those of CUDA.
Status read_candidates(FitRequest& request, const Arguments& arguments) {
  const bool trains = !request.items.empty() && request.items.front().training.has_value();
  request.candidate = [trains](const catalog::Accelerator& accelerator) {
    return catalog::is_board(accelerator) && (!trains || accelerator.vendor == "NVIDIA");
  };
  const auto told = arguments.value("--among");
  if (!told) return {};
  if (!request.smallest_gpu)
    return fail(ErrorCode::bad_input, "--among is about --smallest-gpu", "add it, or leave --gpu out");
  request.among = *told;
  const auto filter = std::make_shared<const catalog::Filter>(GW_TRY(catalog::Filter::parse(*told)));
  request.candidate = [filter](const catalog::Accelerator& accelerator) { return filter->matches(accelerator); };
  return {};
}

std::optional<fit::Quantity> quantity_named(const std::optional<std::string>& name) {
  if (name == "context") return fit::Quantity::context;
  if (name == "batch") return fit::Quantity::batch;
  if (name == "layers") return fit::Quantity::layers;
  if (name == "sequence") return fit::Quantity::sequence;
  return std::nullopt;
}

// Engines that split a model only by tensor parallelism use all the GPUs that were named, unless told otherwise.
Status settle_parallelism(FitRequest& request, const Arguments& arguments) {
  const bool said = arguments.has("--tensor-parallel") || arguments.has("--pipeline-parallel");
  for (FitItem& item : request.items) {
    if (item.training) continue;
    fit::Job& job = item.job;
    const bool by_tensor = job.engine == fit::Engine::vllm || job.engine == fit::Engine::sglang;
    const bool told = said || (by_tensor && arguments.has("--config"));  // its command line leaves nothing open
    const std::size_t asked =
        static_cast<std::size_t>(job.tensor_parallel) * static_cast<std::size_t>(job.pipeline_parallel);
    if (by_tensor && !told && asked == 1 && request.targets.size() > 1)
      job.tensor_parallel = static_cast<int>(request.targets.size());
    const std::size_t wanted =
        static_cast<std::size_t>(job.tensor_parallel) * static_cast<std::size_t>(job.pipeline_parallel);
    request.gpu_count = std::max(request.gpu_count, static_cast<int>(wanted));
    if (told && !request.targets.empty() && request.targets.size() != wanted)
      return fail(ErrorCode::bad_input,
                  fmt::format("tensor parallel {} x pipeline parallel {} uses {} GPUs, {} {} named",
                              job.tensor_parallel, job.pipeline_parallel, wanted, request.targets.size(),
                              request.targets.size() == 1 ? "was" : "were"),
                  fmt::format("write --gpu NAMEx{}", wanted));
  }
  return {};
}

Status check_reserve(const FitRequest& request, const Arguments& arguments) {
  const Bytes reserve = GW_TRY(size_of(arguments, "--reserve")).value_or(Bytes{});
  for (const fit::Target& target : request.targets)
    if (reserve > Bytes{} && reserve >= target.free)
      return fail(ErrorCode::bad_input, fmt::format("--reserve {} leaves nothing of the {} that {} has free",
                                                    to_string(reserve), to_string(target.free), target.name));
  return {};
}

// What runs, but hardly as it was meant.
void note_training(FitRequest& request) {
  const FitItem& item = request.items.front();
  const fit::TrainingJob& job = *item.training;
  if (item.model.context_length > 0 && job.sequence > item.model.context_length)
    request.notes.push_back(fmt::format("A sequence of {} tokens is longer than the {} that {} was made for.",
                                        with_thousands(job.sequence), with_thousands(item.model.context_length),
                                        item.model.name));
  const bool brain = job.precision == fit::Precision::pure_bf16 || job.precision == fit::Precision::amp_bf16;
  for (const fit::Target& target : request.targets) {
    constexpr double kAmpere = 8.0;  // the first NVIDIA architecture whose tensor cores take bf16
    const bool older = target.hardware && target.hardware->vendor == "NVIDIA" &&
                       to_number(target.hardware->capability).value_or(kAmpere) < kAmpere;
    if (!brain || !older) continue;
    request.notes.push_back(
        fmt::format("{} has no bf16 in its tensor cores: torch emulates it slowly. Such GPUs train "
                    "in fp16: --precision {}.",
                    target.name, job.precision == fit::Precision::pure_bf16 ? "pure-fp16" : "amp-fp16"));
    return;
  }
}

// Names what the adapters are put on, so that the answer shows it and emitted files say it.
void name_targets(FitRequest& request) {
  FitItem& item = request.items.front();
  if (item.training->method == fit::TrainingMethod::full || !item.training->lora.targets.empty()) return;
  const auto [names, known] = fit::training::default_targets(item.model, *item.training);
  item.training->lora.targets = names;
  if (!known)
    request.notes.push_back(fmt::format("PEFT has no default targets for {}: adapters are put on {}", item.model.family,
                                        fmt::join(names, ", ")));
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
  if (!arguments.has("--attention")) suit_attention(request.targets, *item.training);
  name_targets(request);
  take_gpus(*item.training, arguments.has("--data-parallel"), request.targets.size());
  request.gpu_count = std::max(request.gpu_count, static_cast<int>(gpus_wanted(*item.training)));
  request.strategy = GW_TRY(read_strategy(arguments, *item.training, request.targets.size()));
  if (request.strategy && request.targets.empty())
    return fail(ErrorCode::bad_input, "--strategy needs GPUs", "name them with --gpu");
  if (request.strategy && request.maximise)
    return fail(ErrorCode::bad_input, "--strategy and --max exclude each other");
  note_training(request);
  return {};
}

}  // namespace

Result<FitRequest> read_fit_request(const Arguments& arguments, const catalog::Catalog& catalog) {
  FitRequest request;
  for (const std::string& name : arguments.values("--gpu"))
    for (fit::Target& target : GW_TRY(targets_named(name, catalog))) request.targets.push_back(std::move(target));
  if (arguments.has("--measure"))
    for (fit::Target& target : GW_TRY(targets_here(catalog))) request.targets.push_back(std::move(target));
  if (const auto config = GW_TRY(config_of(arguments, request.targets.size())))
    request.items.push_back(GW_TRY(item_of_config(*config, arguments, request)));
  else
    for (const std::string& word : arguments.values("MODEL"))
      request.items.push_back(GW_TRY(read_item(word, arguments)));
  request.maximise = quantity_named(arguments.value("--max"));
  request.strict = arguments.has("--strict");
  request.explain = arguments.has("--explain");
  request.smallest_gpu = arguments.has("--smallest-gpu") || request.targets.empty();
  GW_TRY(read_candidates(request, arguments));
  if (request.items.size() > 1 && request.targets.empty())
    return fail(ErrorCode::bad_input, "several models need a GPU to share", "name one with --gpu");
  GW_TRY(check_reserve(request, arguments));
  GW_TRY(settle_parallelism(request, arguments));
  GW_TRY(finish_training(request, arguments));
  GW_TRY(refuse_idle_options(request, arguments));
  const auto corrections = GW_TRY(fit::load_corrections(fit::calibration_path()));
  for (FitItem& item : request.items) item.job.corrections = corrections;
  if (request.items.size() > 1 && (request.maximise || request.smallest_gpu))
    return fail(ErrorCode::bad_input, "--max and --smallest-gpu take one model");
  if (request.maximise && request.targets.empty())
    return fail(ErrorCode::bad_input, "--max needs a GPU", "name one with --gpu");
  return request;
}

}  // namespace gpuwright::cli
