// What the words of `gpuwright fit` ask for, checked and resolved: models, how each is served, and the GPUs.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "cli/command.h"
#include "fit/fit.h"
#include "fit/solve.h"
#include "fit/strategy/strategy.h"
#include "model/model.h"

namespace gpuwright::cli {

// One model of the command line with the job it is to do.
struct FitItem {
  std::string reference;  // as the user wrote it
  model::Model model;
  fit::Job job;
  std::optional<fit::TrainingJob> training;   // --train: this is asked, and not `job`
  std::string converted_to = {};              // the weight format asked for, where it is not the stored one
  std::vector<std::string> own_options = {};  // that only this model's own settings gave: "--rank"
};

struct FitRequest {
  std::vector<FitItem> items;        // more than one: all on the same GPUs at once
  std::vector<fit::Target> targets;  // empty: the user named no GPU
  int gpu_count = 1;                 // for --smallest-gpu: how many of each candidate
  std::optional<fit::Quantity> maximise;
  std::optional<fit::StrategyRequest> strategy;  // --strategy auto
  bool smallest_gpu = false;
  std::string among;         // --among, empty: boards alone (of NVIDIA, for training)
  fit::GpuFilter candidate;  // what it means
  bool strict = false;
  bool explain = false;
  std::vector<std::string> notes;  // keys of --config that were not used
};

// The options of `fit`, grouped by the engine they belong to.
inline constexpr std::string_view kLlamaOptions = "llama.cpp and ollama";
inline constexpr std::string_view kVllmOptions = "vLLM and SGLang";
inline constexpr std::string_view kTorchOptions = "transformers";
inline constexpr std::string_view kTrainingOptions = "Training";
inline constexpr std::string_view kAdapterOptions = "Training adapters";
inline constexpr std::string_view kShardingOptions = "Training on several GPUs";
std::vector<Option> fit_options();

// bad_input for an option that would change nothing: of another engine, of training where nothing is trained, without
// the option that it belongs to (fit_combinations.cpp).
Status refuse_idle_options(const FitRequest& request, const Arguments& arguments);
// The same for a mode of its own: no option but these; none of these.
Status only_beside(const Arguments& arguments, std::string_view mode, std::initializer_list<std::string_view> allowed);
Status refuse_beside(const Arguments& arguments, std::string_view mode,
                     std::initializer_list<std::string_view> refused);

Result<FitRequest> read_fit_request(const Arguments& arguments, const catalog::Catalog& catalog);

// "4090", "h100x8", "a100-80gb:1g.10gb", "24GiB": one target for each device named.
Result<std::vector<fit::Target>> targets_named(std::string_view text, const catalog::Catalog& catalog);

}  // namespace gpuwright::cli
