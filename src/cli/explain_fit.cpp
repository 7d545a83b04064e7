#include "cli/explain_fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/quote.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/fit_ask.h"
#include "cli/fit_log.h"
#include "cli/fit_train.h"
#include "cli/parse.h"
#include "fit/learn/memory_log.h"

namespace gpuwright::cli {
namespace {

// Kinds that a smaller job cures.
constexpr std::string_view kKinds[] = {"oom.vram", "oom.kv_cache", "oom.mig", "oom.util_setting", "oom.fragmentation"};

Finding* memory_finding(explain::Explanation& explanation) {
  for (Finding& finding : explanation.findings)
    if (std::find(std::begin(kKinds), std::end(kKinds), finding.kind) != std::end(kKinds)) return &finding;
  return nullptr;
}

std::optional<std::string> fact_of(const explain::Explanation& explanation, std::string_view name) {
  for (const FactValue& fact : explanation.facts)
    if (fact.name == name) return fact.items.front();
  return std::nullopt;
}

class FitAnswers {
 public:
  FitAnswers(const catalog::Catalog& catalog, const Console& console)
      : catalog_(catalog), chinese_(console.language == Language::chinese) {}

  // The job as it ran, then what to change.
  Result<std::vector<Fix>> about(const Arguments& job) {
    std::vector<Fix> fixes;
    const AskedFit asked = GW_TRY(ask_fit(job, catalog_));
    fixes.push_back({as_it_ran(asked), std::vector<std::string>{command(job)}, false, true, ""});
    if (asked.answer.estimate.verdict() == fit::Verdict::fits) return fixes;
    if (wants_training(job))
      add_strategy(job, fixes);
    else
      add_advice(asked, job, fixes);
    return fixes;
  }

 private:
  std::string_view say(std::string_view english, std::string_view chinese) const {
    return chinese_ ? chinese : english;
  }

  static const fit::GpuEstimate& fullest(const fit::Estimate& estimate) {
    return *std::max_element(estimate.per_gpu.begin(), estimate.per_gpu.end(), [](const auto& a, const auto& b) {
      return a.peak().total(a.meter).expected - a.usable < b.peak().total(b.meter).expected - b.usable;
    });
  }

  static std::string needs(const fit::Estimate& estimate) {
    const fit::GpuEstimate& gpu = fullest(estimate);
    return fmt::format("{} of {}", to_string(gpu.peak().total(gpu.meter).expected), to_string(gpu.usable));
  }

  std::string as_it_ran(const AskedFit& asked) const {
    const fit::Estimate& estimate = asked.answer.estimate;
    const FitItem& item = asked.request->items.front();
    const std::string job = item.training ? ", " + describe_training(*item.training) : "";
    if (estimate.verdict() == fit::Verdict::fits)
      return fmt::format(
          fmt::runtime(say("As fit sees it this should fit ({}{} needs {}): look for other processes, or settings "
                           "that were not told",
                           "按预测可以放下：{}{} 需要 {}；请检查其他进程或设置")),
          item.reference, job, needs(estimate));
    return fmt::format(fmt::runtime(say("As it ran: {}{} needs {}", "按预测：{}{} 需要 {}")), item.reference, job,
                       needs(estimate));
  }

  static std::string command(const Arguments& arguments) {
    std::string text = "gpuwright fit " + shell_word(arguments.value("MODEL").value_or(""));
    for (const Option& option : fit_options()) {
      if (option.value.empty()) {
        if (arguments.has(option.name)) text += " " + option.name;
        continue;
      }
      for (const std::string& value : arguments.values(option.name))
        text += fmt::format(" {} {}", option.name, shell_word(value));
    }
    return text;
  }

  void add_strategy(const Arguments& job, std::vector<Fix>& fixes) {
    Arguments with = job;
    with.add("--strategy", "auto");
    if (!job.has("--allow")) with.add("--allow", "lora,qlora");
    const auto batch = job.integer("--batch", 1, 1 << 20), accumulate = job.integer("--accumulate", 1, 1 << 20);
    if (!job.has("--global-batch") && batch && accumulate)
      with.add("--global-batch", fmt::format("{}", batch->value_or(1) * accumulate->value_or(1)));
    // The search is free to cut the batch into micro-batches.
    with.remove("--batch");
    with.remove("--accumulate");
    // Advice that may run out of memory again is none.
    if (!with.has("--strict")) with.mark("--strict");
    const auto asked = ask_fit(with, catalog_);
    if (!asked || !asked->answer.strategy) return;
    if (!asked->answer.strategy->best) {
      fixes.push_back({std::string(say("No way of training it fits here, LoRA and QLoRA included",
                                       "在此 GPU 上没有可行的训练方案，包括 LoRA 与 QLoRA")),
                       std::vector<std::string>{command(with)}, false, true, ""});
      return;
    }
    fixes.push_back({fmt::format(fmt::runtime(say("This fits: {}, which needs {}", "可行：{}，需要 {}")),
                                 describe_training(training_job_of(asked->answer)), needs(asked->answer.estimate)),
                     std::vector<std::string>{command(with)}, false, true, ""});
  }

  void add_advice(const AskedFit& asked, const Arguments& job, std::vector<Fix>& fixes) {
    for (const fit::Advice& advice : asked.answer.estimate.advice)
      if (advice.verdict_after == fit::Verdict::fits && fixes.size() < 4)
        fixes.push_back(
            {fmt::format(fmt::runtime(say("This fits: {} ({})", "可行：{}（{}）")), advice.change, advice.cost),
             {},
             false,
             true,
             ""});
    Arguments with = job;
    with.add("--max", "context");
    if (!with.has("--strict")) with.mark("--strict");
    const auto solved = ask_fit(with, catalog_);
    if (!solved || !solved->answer.solution || solved->answer.estimate.verdict() != fit::Verdict::fits) return;
    fixes.push_back({fmt::format(fmt::runtime(say("This fits: a context of {} tokens", "可行：上下文 {} 个 token")),
                                 with_thousands(solved->answer.solution->value)),
                     std::vector<std::string>{command(with)}, false, true, ""});
  }

  const catalog::Catalog& catalog_;
  bool chinese_;
};

}  // namespace

Status add_answers_of_fit(const std::string& words, const std::string& log, const catalog::Catalog& catalog,
                          explain::Explanation& explanation, const Console& console) {
  std::vector<std::string> apart;
  for (const std::string_view word : split(words, ' '))
    if (!trim(word).empty()) apart.emplace_back(trim(word));
  std::unique_ptr<ByteSource> source;
  if (memory_finding(explanation) != nullptr && log != "-" && !is_directory(log))
    if (auto opened = open_file(log)) source = std::move(*opened);
  return add_answers_of_fit(apart, source.get(), catalog, explanation, console);
}

Status add_answers_of_fit(const std::vector<std::string>& words, const ByteSource* log, const catalog::Catalog& catalog,
                          explain::Explanation& explanation, const Console& console) {
  Finding* finding = memory_finding(explanation);
  if (finding == nullptr) return {};
  std::vector<std::string> line = {"fit"};
  line.insert(line.end(), words.begin(), words.end());
  // MODEL may come from the log: the parser does not ask for it.
  Arguments job = GW_TRY(parse(line, commands())).arguments;
  if (log != nullptr) {
    const auto memory = fit::read_memory_log(*log);
    if (memory)
      if (const auto laid = with_log(job, memory->run, catalog)) job = laid->arguments;
  }
  if (!job.has("MODEL")) return words.empty() ? Status() : fail(ErrorCode::bad_input, "--fit names no model");
  if (!job.has("--gpu")) {
    const auto total = fact_of(explanation, "total_bytes");
    if (!total && words.empty()) return {};
    if (total) job.add("--gpu", fmt::format("{}MiB", to_integer(*total).value_or(0) >> 20));
  }
  auto fixes = FitAnswers(catalog, console).about(job);
  if (!fixes) return words.empty() ? Status() : tl::unexpected(fixes.error());
  finding->fixes.insert(finding->fixes.begin(), fixes->begin(), fixes->end());
  return {};
}

}  // namespace gpuwright::cli
