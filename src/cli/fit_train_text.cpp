// Training jobs and plans for people.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "cli/fit_train.h"
#include "cli/style.h"
#include "cli/table.h"
#include "fit/strategy/memory.h"
#include "fit/strategy/words.h"

namespace gpuwright::cli {
namespace {

std::string times(double factor) {
  return fmt::format("{:.2f}x", factor);
}

std::string saved(Bytes bytes) {
  if (bytes.count == 0) return "-";
  return bytes.count > 0 ? to_string(bytes) : "+" + to_string(Bytes{-bytes.count});
}

void print_steps(const fit::Strategy& strategy, const Console& console) {
  print_heading(console, say(console, "From the plain job to the answer"));
  const auto word = [&](std::string_view english) { return std::string(say(console, english)); };
  Table table({{word("change"), Align::left, true},
               {word("saves"), Align::right},
               {word("peak"), Align::right},
               {word("time"), Align::right},
               {word("verdict")}},
              2);
  table.add({say(console, "as asked: {}", fit::describe(strategy.plain.job)), "",
             to_string(fit::strategy::peak_of(strategy.plain.estimate)), times(strategy.plain.slowdown.factor),
             word(fit::name_of(strategy.plain.estimate.verdict()))});
  for (const fit::StrategyStep& step : strategy.steps)
    table.add({step.change, saved(step.saves), to_string(step.peak_after), times(step.slowdown_after),
               word(fit::name_of(step.verdict_after))});
  table.print(console);
}

void print_slowdown(const fit::Plan& plan, bool explain, const Console& console) {
  print_heading(console, say(console, "What the time of a step is made of: {} an undisturbed one (an estimate)",
                             times(plan.slowdown.factor)));
  for (const fit::Slowdown::Part& part : plan.slowdown.parts) {
    std::string text = fmt::format("  {:+.1f} %  {}", part.share * 100, part.name);
    if (explain) text += fmt::format(" [{}]", part.source);
    console.out << wrap(text, console.width, 6) << '\n';
  }
}

void print_alternatives(const fit::Strategy& strategy, const Console& console) {
  if (strategy.alternatives.empty()) return;
  print_heading(console, say(console, "Other plans that fit"));
  const auto word = [&](std::string_view english) { return std::string(say(console, english)); };
  Table table({{word("plan"), Align::left, true},
               {word("peak"), Align::right},
               {word("time"), Align::right},
               {word("verdict")}},
              2);
  for (const fit::Plan& plan : strategy.alternatives)
    table.add({fit::describe(plan.job), to_string(fit::strategy::peak_of(plan.estimate)), times(plan.slowdown.factor),
               word(fit::name_of(plan.estimate.verdict()))});
  table.print(console);
}

std::string count_of(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", with_thousands(static_cast<std::int64_t>(count)), count == 1 ? one : many);
}

}  // namespace

std::string describe_training(const fit::TrainingJob& job) {
  std::string text = fmt::format("training, {}, sequence {}", fit::describe(job), with_thousands(job.sequence));
  if (job.method != fit::TrainingMethod::full) text += fmt::format(", rank {}", job.lora.rank);
  if (!job.lora.targets.empty() && job.method != fit::TrainingMethod::full)
    text += fmt::format(" on {}", fmt::join(job.lora.targets, ", "));
  if (job.attention == "eager") text += ", eager attention";
  if (job.fused_kernels) text += ", fused kernels";
  if (job.compiled) text += ", compiled";
  return text;
}

void print_strategy(const FitAnswer& answer, const Console& console) {
  if (!answer.strategy) return;
  const fit::Strategy& strategy = *answer.strategy;
  console.out << '\n';
  if (!strategy.best) {
    console.out << paint(
                       console, Tone::bad,
                       fmt::format("none of {} fits; the leanest is shown", count_of(strategy.plans, "plan", "plans")))
                << '\n';
    return;
  }
  console.out << paint(console, Tone::good,
                       wrap(fmt::format("best of {} ({} tried), global batch {}: {}",
                                        count_of(strategy.plans, "plan", "plans"),
                                        with_thousands(static_cast<std::int64_t>(strategy.estimated)),
                                        answer.request->strategy->global_batch, fit::describe(strategy.best->job)),
                            console.width, 2))
              << '\n';
  print_steps(strategy, console);
  print_slowdown(*strategy.best, answer.request->explain, console);
  print_alternatives(strategy, console);
}

}  // namespace gpuwright::cli
