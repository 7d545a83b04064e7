// Answers about training: one job, the largest that fits, the smallest GPU, the best plan.
#include "cli/fit_train.h"
#include "fit/strategy/training_answers.h"
#include "fit/training/solve.h"

namespace gpuwright::cli {
namespace {

constexpr std::size_t kChoicesShown = 5;

// Of the first GPU that was named by its catalogue name; sizes and slices have no known speed.
Result<fit::Machine> machine_of(const std::vector<fit::Target>& targets, const catalog::Catalog& catalog) {
  for (const catalog::Accelerator& accelerator : catalog.accelerators())
    if (!targets.empty() && accelerator.name == targets.front().name) return fit::machine_from(accelerator);
  return fit::unknown_machine();
}

Result<fit::Estimate> estimate_with(const model::Model& model, const fit::TrainingJob& job,
                                    const std::vector<fit::Target>& targets) {
  return fit::estimate_training(GW_TRY(fit::model_for(model, job.method)), job, targets);
}

Status fill_smallest(FitAnswer& answer, const catalog::Catalog& catalog) {
  const FitRequest& request = *answer.request;
  const FitItem& item = request.items.front();
  const fit::TrainingJob& job = training_job_of(answer);
  const model::Model model = GW_TRY(fit::model_for(item.model, job.method));
  answer.gpu_choices = GW_TRY(
      fit::smallest_training_gpus(model, job, catalog, request.gpu_count, true, kChoicesShown, request.candidate));
  if (!request.targets.empty()) return {};
  if (!answer.gpu_choices.empty()) {
    answer.estimate = answer.gpu_choices.front().estimate;
    return {};
  }
  // Nothing holds it: show what the largest accelerator lacks.
  const catalog::Accelerator* largest = nullptr;
  for (const catalog::Accelerator& accelerator : catalog.accelerators())
    if (request.candidate(accelerator) && (largest == nullptr || accelerator.usable() > largest->usable()))
      largest = &accelerator;
  if (largest == nullptr)
    return fail(ErrorCode::bad_input, "no accelerator of the catalogue is asked about", "write a wider --among");
  const std::vector<fit::Target> targets(static_cast<std::size_t>(request.gpu_count), fit::target_from(*largest));
  answer.estimate = GW_TRY(fit::estimate_training(model, job, targets));
  answer.estimate.advice = fit::advise_training(item.model, job, targets, GW_TRY(fit::machine_from(*largest)));
  return {};
}

Status fill_largest(FitAnswer& answer) {
  const FitRequest& request = *answer.request;
  const FitItem& item = request.items.front();
  const model::Model model = GW_TRY(fit::model_for(item.model, item.training->method));
  switch (*request.maximise) {
    case fit::Quantity::batch:
      answer.training_solution =
          GW_TRY(fit::largest_micro_batch(model, *item.training, request.targets, request.strict));
      break;
    case fit::Quantity::context:
    case fit::Quantity::sequence:
      answer.training_solution = GW_TRY(fit::largest_sequence(model, *item.training, request.targets, request.strict));
      break;
    case fit::Quantity::layers:
      return fail(ErrorCode::bad_input, "--max layers is for inference", "with --train: --max batch or --max sequence");
  }
  answer.estimate = answer.training_solution->estimate;
  return {};
}

Status fill_strategy(FitAnswer& answer, const catalog::Catalog& catalog) {
  const FitRequest& request = *answer.request;
  const fit::Machine machine = GW_TRY(machine_of(request.targets, catalog));
  answer.strategy =
      GW_TRY(fit::find_strategy(request.items.front().model, *request.strategy, request.targets, machine));
  answer.estimate = answer.strategy->best ? answer.strategy->best->estimate : answer.strategy->leanest.estimate;
  if (!machine.assumed.empty())
    answer.estimate.notes.emplace_back("the speed of this GPU is not known: the slow-down is that of an RTX 4090");
  return {};
}

}  // namespace

const fit::TrainingJob& training_job_of(const FitAnswer& answer) {
  if (answer.strategy) return answer.strategy->best ? answer.strategy->best->job : answer.strategy->leanest.job;
  if (answer.training_solution) return answer.training_solution->job;
  return *answer.request->items.front().training;
}

Result<FitAnswer> answer_training(const FitRequest& request, const catalog::Catalog& catalog) {
  FitAnswer answer;
  answer.request = &request;
  const FitItem& item = request.items.front();
  if (request.targets.empty()) {
    GW_TRY(fill_smallest(answer, catalog));
    return answer;
  }
  if (request.strategy)
    GW_TRY(fill_strategy(answer, catalog));
  else if (request.maximise)
    GW_TRY(fill_largest(answer));
  else
    answer.estimate = GW_TRY(estimate_with(item.model, *item.training, request.targets));
  if (!request.strategy && !request.maximise && answer.estimate.verdict() != fit::Verdict::fits)
    answer.estimate.advice = fit::advise_training(item.model, training_job_of(answer), request.targets,
                                                  GW_TRY(machine_of(request.targets, catalog)));
  if (request.smallest_gpu) GW_TRY(fill_smallest(answer, catalog));
  return answer;
}

}  // namespace gpuwright::cli
