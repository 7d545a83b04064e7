// Options that would change nothing are refused: an answer that passes over what was asked misleads.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/fit_request.h"

namespace gpuwright::cli {
namespace {

using Names = std::initializer_list<std::string_view>;

bool is_one_of(std::string_view name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

tl::unexpected<Error> idle(const Option& option, std::string_view why, std::string hint = "leave it out") {
  return fail(ErrorCode::bad_input, fmt::format("{} {}", option.name, why), std::move(hint));
}

bool serves_with(const FitRequest& request, std::initializer_list<fit::Engine> engines) {
  return std::any_of(request.items.begin(), request.items.end(), [&](const FitItem& item) {
    return !item.training && std::find(engines.begin(), engines.end(), item.job.engine) != engines.end();
  });
}

Status check_engine(const Option& option, const FitRequest& request, bool training) {
  const bool foreign =
      (option.group == kLlamaOptions && !serves_with(request, {fit::Engine::llama_cpp, fit::Engine::ollama})) ||
      (option.group == kVllmOptions && !serves_with(request, {fit::Engine::vllm, fit::Engine::sglang})) ||
      (option.group == kTorchOptions && !serves_with(request, {fit::Engine::transformers}) && !training);
  if (!foreign) return {};
  if (training) return idle(option, "is about serving, and this trains");
  return idle(option, fmt::format("is an option of {}", option.group),
              "name the engine with --engine, or leave the option out");
}

bool adapts(const FitRequest& request) {
  const auto has_adapters = [](fit::TrainingMethod method) { return method != fit::TrainingMethod::full; };
  if (has_adapters(request.items.front().training->method)) return true;
  return request.strategy &&
         std::any_of(request.strategy->freedom.also.begin(), request.strategy->freedom.also.end(), has_adapters);
}

Status check_training(const Option& option, const FitRequest& request) {
  const fit::TrainingJob& job = *request.items.front().training;
  if (option.name == "--engine") return idle(option, "is about serving, and this trains", "--train-engine");
  if (is_one_of(option.name, {"--prompt", "--new", "--kv-type", "--key-type", "--value-type", "--all-logits"}))
    return idle(option, "is about serving, and this trains");
  if (option.group == kAdapterOptions && !adapts(request))
    return idle(option, "is about adapters, and --train full has none", "--train lora, dora or qlora");
  const fit::Sharding kind = job.sharding.kind;
  const bool fsdp = kind == fit::Sharding::fsdp || kind == fit::Sharding::fsdp_grad_only;
  const bool zero = kind != fit::Sharding::none && !fsdp;
  if (request.strategy && request.strategy->freedom.sharding) return {};
  if (is_one_of(option.name, {"--bucket-elements", "--no-overlap-comm"}) && !zero)
    return idle(option, "is about ZeRO", "--zero 1, 2 or 3");
  if (option.name == "--no-limit-all-gathers" && !fsdp) return idle(option, "is about FSDP", "--fsdp");
  if (option.name == "--load-whole" && kind == fit::Sharding::none)
    return idle(option, "is about sharded weights", "--zero 3 or --fsdp");
  if (option.name == "--sequence-parallel" && job.tensor_parallel == 1)
    return idle(option, "goes with tensor parallelism", "--tensor-parallel N");
  if (option.name == "--interleaved-pipeline" && job.pipeline_parallel == 1)
    return idle(option, "goes with pipeline parallelism", "--pipeline-parallel N");
  return {};
}

// Options that only mean something beside another.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kCompanions = {{
    {"--global-batch", "--strategy"},
    {"--allow", "--strategy"},
    {"--out", "--emit"},
    {"--force", "--out"},
}};

Status check(const Option& option, const FitRequest& request) {
  const bool training = request.items.front().training.has_value();
  GW_TRY(check_engine(option, request, training));
  const bool about_training =
      option.group == kTrainingOptions || option.group == kAdapterOptions || option.group == kShardingOptions;
  if (about_training && !training)
    return idle(option, "is about training", "say how: --train full|lora|qlora, or leave it out");
  if (training) GW_TRY(check_training(option, request));
  return {};
}

bool has(const FitItem& item, const Option& option) {
  return std::find(item.own_options.begin(), item.own_options.end(), option.name) != item.own_options.end();
}

}  // namespace

Status refuse_idle_options(const FitRequest& request, const Arguments& arguments) {
  for (const Option& option : fit_options()) {
    for (const FitItem& item : request.items) {
      if (!has(item, option)) continue;
      FitRequest alone;
      alone.items = {item};
      alone.strategy = request.strategy;
      GW_TRY(check(option, alone));
    }
    if (!arguments.has(option.name)) continue;
    GW_TRY(check(option, request));
    for (const auto& [name, companion] : kCompanions)
      if (option.name == name && !arguments.has(companion))
        return idle(option, fmt::format("belongs to {}", companion),
                    fmt::format("give {}, or leave it out", companion));
  }
  return {};
}

Status only_beside(const Arguments& arguments, std::string_view mode, Names allowed) {
  for (const Option& option : fit_options())
    if (arguments.has(option.name) && option.name != mode && !is_one_of(option.name, allowed))
      return idle(option, fmt::format("changes nothing beside {}", mode));
  return {};
}

Status refuse_beside(const Arguments& arguments, std::string_view mode, Names refused) {
  for (const Option& option : fit_options())
    if (arguments.has(option.name) && is_one_of(option.name, refused))
      return idle(option, fmt::format("changes nothing beside {}", mode));
  return {};
}

}  // namespace gpuwright::cli
