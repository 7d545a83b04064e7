#include "cli/fit_emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "cli/fit_request.h"
#include "cli/fit_train.h"
#include "fit/training/adapters.h"
#include "model/config.h"

namespace gpuwright::cli {
namespace {

std::string path_in(const std::string& directory, const std::string& name) {
  return directory.empty() || directory.back() == '/' ? directory + name : directory + "/" + name;
}

// What other programs call the model: a preset by the repository that it describes.
std::string reference_of(const FitItem& item, const Arguments& arguments) {
  const auto variant = arguments.value("--variant");
  if (variant && item.model.source == model::Source::gguf && item.reference.starts_with("hf://"))
    return item.reference + ":" + *variant;
  if (item.model.source != model::Source::preset) return item.reference;
  for (const model::PresetFacts& facts : model::preset_facts())
    if (facts.id == item.model.name && !facts.repositories.empty()) return facts.repositories.front();
  return item.reference;
}

// Trainers have defaults of their own for what gets adapters: the answer's are written out.
Result<fit::TrainingJob> with_named_targets(const model::Model& model, fit::TrainingJob job) {
  if (job.method == fit::TrainingMethod::full || !job.lora.targets.empty()) return job;
  for (const fit::training::Module& module : GW_TRY(fit::training::adapted_modules(model, job)))
    if (std::find(job.lora.targets.begin(), job.lora.targets.end(), module.name) == job.lora.targets.end())
      job.lora.targets.push_back(module.name);
  return job;
}

}  // namespace

std::vector<Option> emit_options() {
  Option target, out, force, config;
  target.name = "--emit";
  target.value = "TARGET";
  target.help = "the files and the command that realise the answer";
  target.choices = fit::emit_target_names();
  out.name = "--out";
  out.value = "FOLDER";
  out.help = "write the files of --emit there instead of printing them";
  force.name = "--force";
  force.help = "replace files that are there";
  config.name = "--config";
  config.value = "FILE";
  config.help =
      "judge what this DeepSpeed, accelerate, Trainer or LLaMA-Factory file, or this file with a `vllm serve` or "
      "`llama-server` command line, asks for";
  config.repeated = true;
  std::vector<Option> options = {target, out, force, config};
  for (Option& option : options) option.group = "Configuration files";
  return options;
}

Result<std::optional<fit::Emission>> emission_of(const FitAnswer& answer, const Arguments& arguments) {
  const auto name = arguments.value("--emit");
  if (!name) return std::nullopt;
  const fit::EmitTarget target = GW_TRY(fit::emit_target_named(*name));
  const FitRequest& request = *answer.request;
  if (request.items.size() > 1) return fail(ErrorCode::bad_input, "--emit takes one model");
  if (request.targets.empty()) return fail(ErrorCode::bad_input, "--emit needs GPUs", "name them with --gpu");
  const FitItem& item = request.items.front();
  const int gpus = static_cast<int>(request.targets.size());
  if (fit::is_training(target) != item.training.has_value())
    return fail(ErrorCode::bad_input, fmt::format("{} is for {}", *name, item.training ? "serving" : "training"),
                item.training ? "leave --train out" : "say how to train: --train full|lora|qlora");
  if (answer.estimate.verdict() == fit::Verdict::no) return std::nullopt;
  const std::string reference = reference_of(item, arguments);
  if (item.training)
    return GW_TRY(fit::emit(target, reference, GW_TRY(with_named_targets(item.model, training_job_of(answer))), gpus));
  return GW_TRY(fit::emit(target, reference, answer.solution ? answer.solution->job : item.job, gpus,
                          {item.converted_to, item.model.source == model::Source::gguf}));
}

Result<std::optional<fit::ReadConfig>> config_of(const Arguments& arguments, std::size_t gpus) {
  const std::vector<std::string> paths = arguments.values("--config");
  if (paths.empty()) return std::nullopt;
  const fit::TrainingJob said = GW_TRY(read_training_job(arguments));
  fit::SaidBeside beside;
  if (arguments.has("--batch")) beside.micro_batch = said.micro_batch;
  if (arguments.has("--accumulate")) beside.accumulation = said.gradient_accumulation;
  beside.precision = arguments.has("--precision");
  const std::int64_t split = gpus_wanted(said) / said.data_parallel;
  if (arguments.has("--data-parallel"))
    beside.gpus = said.data_parallel;
  else if (gpus > 0 && static_cast<std::int64_t>(gpus) % split == 0)
    beside.gpus = static_cast<std::int64_t>(gpus) / split;
  fit::ReadConfig config = GW_TRY(fit::read_config_files(paths, said, fit::Job{}, beside));
  if (config.serving && wants_training(arguments))
    return fail(ErrorCode::bad_input,
                fmt::format("{} is a command line of {}, which does not train", paths.front(),
                            fit::name_of(config.formats.front())),
                "leave --train out");
  if (config.training) config.training = GW_TRY(lay_over(arguments, std::move(*config.training)));
  return config;
}

Status write_emission(const fit::Emission& emission, const std::string& directory, bool force) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!is_directory(directory))
    return fail(ErrorCode::bad_input, fmt::format("--out {} is no folder", directory), "name another");
  for (const fit::EmittedFile& file : emission.files) {
    const std::string path = path_in(directory, file.name);
    if (!force && path_exists(path))
      return fail(ErrorCode::bad_input, fmt::format("{} is there already, and nothing was written", path),
                  "--force replaces it");
  }
  for (const fit::EmittedFile& file : emission.files)
    GW_TRY(write_file_atomically(path_in(directory, file.name), file.contents));
  return {};
}

void print_emission(const fit::Emission& emission, const std::string& directory, const Console& console) {
  const char* bold = console.color ? "\x1b[1m" : "";
  const char* plain = console.color ? "\x1b[0m" : "";
  for (const fit::EmittedFile& file : emission.files) {
    if (directory.empty())
      console.out << bold << "# " << file.name << plain << '\n' << file.contents << '\n';
    else
      console.out << "wrote " << path_in(directory, file.name) << '\n';
  }
  console.out << bold << "# run" << plain << '\n' << emission.command;
  for (const std::string& note : emission.notes) console.out << "# " << note << '\n';
}

Json to_json(const fit::Emission& emission) {
  Json files = Json::array();
  for (const fit::EmittedFile& file : emission.files)
    files.push(Json::object().set("name", file.name).set("contents", file.contents));
  Json notes = Json::array();
  for (const std::string& note : emission.notes) notes.push(note);
  return Json::object().set("files", files).set("command", emission.command).set("notes", notes);
}

}  // namespace gpuwright::cli
