#include "fit/emit/emit.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "fit/emit/serving.h"
#include "fit/emit/trainer.h"

namespace gpuwright::fit {
namespace {

struct TargetName {
  EmitTarget target;
  std::string_view name;
};
constexpr std::array kTargets{TargetName{EmitTarget::deepspeed, "deepspeed"},
                              TargetName{EmitTarget::fsdp, "fsdp"},
                              TargetName{EmitTarget::accelerate, "accelerate"},
                              TargetName{EmitTarget::torchrun, "torchrun"},
                              TargetName{EmitTarget::trl, "trl"},
                              TargetName{EmitTarget::llama_factory, "llama-factory"},
                              TargetName{EmitTarget::vllm, "vllm"},
                              TargetName{EmitTarget::llama_cpp, "llama.cpp"},
                              TargetName{EmitTarget::ollama, "ollama"}};

constexpr std::size_t kLongestReference = 4096;

Result<std::string> checked_reference(std::string_view reference) {
  if (reference.substr(0, 5) == "hf://") reference.remove_prefix(5);
  if (reference.empty()) return fail(ErrorCode::bad_input, "no model is named");
  if (reference.size() > kLongestReference || printable(reference) != reference)
    return fail(ErrorCode::bad_input,
                "the model's name cannot stand in a configuration: it is too long or holds "
                "control characters");
  if (reference.front() == '-')
    return fail(ErrorCode::bad_input, fmt::format("'{}' would be taken for an option", reference),
                "write ./ before a path");
  return std::string(reference);
}

}  // namespace

Result<EmitTarget> emit_target_named(std::string_view text) {
  std::string name = lower(text);
  if (name == "llama_cpp" || name == "llamacpp" || name == "llama-server") name = "llama.cpp";
  if (name == "llamafactory" || name == "llama_factory") name = "llama-factory";
  for (const TargetName& known : kTargets)
    if (known.name == name) return known.target;
  const auto near = nearest_name(name, emit_target_names());
  return fail(ErrorCode::not_found, fmt::format("nothing is known to be emitted for '{}'", text),
              near ? fmt::format("did you mean '{}'?", *near)
                   : fmt::format("known are {}", fmt::join(emit_target_names(), ", ")));
}

std::string_view name_of(EmitTarget target) {
  for (const TargetName& known : kTargets)
    if (known.target == target) return known.name;
  return "?";
}

bool is_training(EmitTarget target) {
  return target <= EmitTarget::llama_factory;
}

std::vector<std::string> emit_target_names() {
  std::vector<std::string> names;
  for (const TargetName& known : kTargets) names.emplace_back(known.name);
  return names;
}

Result<Emission> emit(EmitTarget target, std::string_view reference, const TrainingJob& job, int gpus) {
  if (!is_training(target))
    return fail(ErrorCode::bad_input, fmt::format("{} serves models and does not train them", name_of(target)),
                "--emit trl, accelerate, deepspeed, fsdp, torchrun or llama-factory");
  return emit_training(target, GW_TRY(checked_reference(reference)), job, gpus);
}

Status can_emit(EmitTarget target, const TrainingJob& job, int gpus) {
  return is_training(target) ? check_training(target, job, gpus)
                             : Status(fail(ErrorCode::bad_input, fmt::format("{} does not train", name_of(target))));
}

Result<Emission> emit(EmitTarget target, std::string_view reference, const Job& job, int gpus,
                      const ServedWeights& weights) {
  if (is_training(target))
    return fail(ErrorCode::bad_input, fmt::format("{} trains models and does not serve them", name_of(target)),
                "--emit vllm, llama.cpp or ollama");
  return emit_serving(target, GW_TRY(checked_reference(reference)), job, gpus, weights);
}

}  // namespace gpuwright::fit
