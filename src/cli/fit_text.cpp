#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "cli/fit_answer.h"
#include "cli/fit_train.h"
#include "cli/style.h"
#include "cli/table.h"
#include "fit/engine.h"

namespace gpuwright::cli {
namespace {

using fit::ComponentKind;
using fit::Verdict;

Tone tone_of(Verdict verdict) {
  return verdict == Verdict::fits ? Tone::good : verdict == Verdict::tight ? Tone::warning : Tone::bad;
}

std::string describe(const FitItem& item) {
  const model::Model& model = item.model;
  std::string parameters = in_billions(model.parameters());
  if (model.active_parameters() != model.parameters())
    parameters += fmt::format(" ({} active)", in_billions(model.active_parameters()));
  return fmt::format("{}: {} parameters, {} of weights as {}{}", model.name, parameters,
                     to_string(model.weight_bytes()), model.weight_format,
                     model.tensors_are_exact ? "" : " (computed from the configuration)");
}

std::string describe(const fit::Job& job) {
  std::string text = std::string(fit::name_of(job.engine));
  if (!job.engine_version.empty()) text += " " + job.engine_version;
  if (job.context_tokens) text += fmt::format(", context {}", with_thousands(*job.context_tokens));
  if (job.prompt_tokens) text += fmt::format(", prompt {}", with_thousands(*job.prompt_tokens));
  if (job.new_tokens) text += fmt::format(", {} new tokens", with_thousands(*job.new_tokens));
  text += job.sequences == 1 ? ", 1 sequence" : fmt::format(", {} sequences", with_thousands(job.sequences));
  if (job.key_type) text += fmt::format(", {} keys", model::traits(*job.key_type).name);
  if (job.value_type) text += fmt::format(", {} values", model::traits(*job.value_type).name);
  if (job.tensor_parallel > 1) text += fmt::format(", tensor parallel {}", job.tensor_parallel);
  if (job.pipeline_parallel > 1) text += fmt::format(", pipeline parallel {}", job.pipeline_parallel);
  return text;
}

void print_header(const FitAnswer& answer, const Console& console) {
  for (const FitItem& item : answer.request->items) {
    console.out << paint(console, Tone::heading, wrap(printable(describe(item)), console.width, 2)) << '\n';
    const bool solved = answer.solution && answer.request->items.size() == 1;
    const std::string job =
        item.training ? describe_training(training_job_of(answer)) : describe(solved ? answer.solution->job : item.job);
    console.out << "  " << wrap(printable(job), console.width - 2, 4) << '\n';
  }
}

bool same_shape(const fit::GpuEstimate& a, const fit::GpuEstimate& b) {
  const fit::Range x = a.peak().total(), y = b.peak().total();
  return a.gpu == b.gpu && a.usable == b.usable && x.low == y.low && x.expected == y.expected && x.high == y.high;
}

std::string ranks_text(int first, int last) {
  return first == last ? fmt::format("GPU {}", first) : fmt::format("GPUs {}-{}", first, last);
}

void print_gpu(const fit::GpuEstimate& gpu, int last_rank, bool only, const Console& console) {
  const fit::Range total = gpu.peak().total();
  const std::string which = only ? "" : ranks_text(gpu.rank, last_rank) + ": ", name = printable(gpu.gpu),
                    verdict(say(console, fit::name_of(gpu.verdict))),
                    figures = say(console, "{} of {} ({} to {})", to_string(total.expected), to_string(gpu.usable),
                                  to_string(total.low), to_string(total.high));
  console.out << '\n'
              << which << paint(console, Tone::name, name) << "  " << paint(console, tone_of(gpu.verdict), verdict);
  const bool in_one_line = display_width(which + name + verdict + figures) + 4 <= console.width;
  console.out << (in_one_line ? "  " + figures : "\n" + wrap("  " + figures, console.width, 4)) << '\n';
  std::vector<Part> parts;
  for (int kind = 0; kind < fit::kComponentKinds; ++kind) {
    const auto which_kind = static_cast<ComponentKind>(kind);
    const Bytes bytes = gpu.peak().total_of(which_kind).expected;
    if (bytes.count > 0)
      parts.push_back(
          {std::string(say(console, fit::label_of(which_kind))), static_cast<double>(bytes.count), to_string(bytes)});
  }
  const Bytes free = gpu.usable - total.expected;
  print_bar(console, parts, static_cast<double>(gpu.usable.count), free.count > 0 ? to_string(free) : "");
  std::string binding = "  " + say(console, "the peak is at: {}", say(console, gpu.peak().name));
  if (!gpu.peak().knob.empty()) binding += say(console, "; lowered by {}", gpu.peak().knob);
  console.out << wrap(printable(binding), console.width, 4) << '\n';
  if (total.expected > gpu.usable)
    console.out << "  " << say(console, "short by {}", to_string(total.expected - gpu.usable)) << '\n';
  else if (gpu.at_best != Verdict::fits)
    console.out << wrap("  " + std::string(say(console, gpu.at_best == Verdict::no
                                                            ? "the bytes fit, but the engine does not start as asked: "
                                                              "see the notes"
                                                            : "the bytes fit, but the engine starts only with another "
                                                              "setting: see the notes")),
                        console.width, 4)
                << '\n';
}

// GPUs that carry the same are shown once.
void print_gpus(const fit::Estimate& estimate, const Console& console) {
  const auto& gpus = estimate.per_gpu;
  for (std::size_t i = 0; i < gpus.size();) {
    std::size_t last = i;
    while (last + 1 < gpus.size() && same_shape(gpus[i], gpus[last + 1])) ++last;
    print_gpu(gpus[i], gpus[last].rank, gpus.size() == 1, console);
    i = last + 1;
  }
}

void print_capacities(const fit::Estimate& estimate, const Console& console) {
  for (const fit::Capacity& capacity : estimate.capacities) {
    std::string name = capacity.name;
    std::replace(name.begin(), name.end(), '_', ' ');
    console.out << wrap("  " + say(console, "{}: {} ({} to {})", say(console, name), with_thousands(capacity.expected),
                                   with_thousands(capacity.low), with_thousands(capacity.high)),
                        console.width, 4)
                << '\n';
  }
  if (estimate.host_bytes().count > 0)
    console.out << "  " << say(console, "host memory: {}", to_string(estimate.host_bytes())) << '\n';
}

void print_advice(const fit::Estimate& estimate, const Console& console) {
  if (estimate.advice.empty()) return;
  print_heading(console, say(console, "What to change, the cheapest first"));
  for (const fit::Advice& advice : estimate.advice) {
    const std::string_view verdict = advice.verdict_after == Verdict::no     ? "not enough alone"
                                     : advice.verdict_after == Verdict::fits ? "then it fits"
                                                                             : "then it is tight";
    const std::string text = "  - " + say(console, "{}; saves {}, {} (costs: {})", printable(advice.change),
                                          to_string(advice.saves), say(console, verdict), advice.cost);
    console.out << wrap(text, console.width, 4) << '\n';
  }
}

void print_solution(const FitAnswer& answer, const Console& console) {
  if (!answer.largest()) return;
  const std::string_view what = name_of(*answer.request->maximise);
  const std::int64_t value = *answer.largest();
  const bool none = *answer.request->maximise == fit::Quantity::layers ? value < 0 : value < 1;
  console.out << '\n';
  if (none)
    console.out << paint(console, Tone::bad, say(console, "not even the smallest {} fits", say(console, what))) << '\n';
  else
    console.out << paint(console, Tone::good, say(console, "largest {}: {}", say(console, what), with_thousands(value)))
                << '\n';
}

void print_choices(const FitAnswer& answer, const Console& console) {
  if (!answer.request->smallest_gpu) return;
  if (answer.gpu_choices.empty()) {
    console.out << '\n' << paint(console, Tone::bad, say(console, "no accelerator of the catalogue holds it")) << '\n';
    return;
  }
  const int count = answer.request->gpu_count;
  print_heading(console, count == 1 ? std::string(say(console, "Smallest GPUs that hold it"))
                                    : say(console, "Smallest GPUs of which {} hold it", count));
  const auto column = [&](std::string_view name) { return std::string(say(console, name)); };
  Table table(
      {{"GPU"}, {column("usable"), Align::right}, {column("needed"), Align::right}, {column("at most"), Align::right}},
      2);
  bool all_verified = true;
  for (const fit::GpuChoice& choice : answer.gpu_choices) {
    const fit::GpuEstimate& gpu = choice.estimate.per_gpu.front();
    const fit::Range total = gpu.peak().total();
    const bool verified = choice.accelerator->memory_is_verified();
    all_verified = all_verified && verified;
    table.add({choice.accelerator->name, (verified ? "" : "~") + to_string(gpu.usable), to_string(total.expected),
               to_string(total.high)});
  }
  table.print(console);
  if (!all_verified)
    console.out << paint(console, Tone::dim,
                         wrap("  " + std::string(say(console, "~: by a rule; no driver's figure is known")),
                              console.width, 4))
                << '\n';
  if (answer.request->among.empty())
    console.out << paint(console, Tone::dim,
                         wrap("  " + std::string(
                                         say(console,
                                             "boards only; --among 'vram>0' looks at laptops, Macs and modules, too")),
                              console.width, 4))
                << '\n';
}

void print_explanation(const fit::Estimate& estimate, const Console& console) {
  for (const fit::GpuEstimate& gpu : estimate.per_gpu) {
    print_heading(console, fmt::format("GPU {} ({}): every instant", gpu.rank, printable(gpu.gpu)));
    console.out << wrap(fmt::format("  usable {} = {}", to_string(gpu.usable), printable(gpu.usable_formula)),
                        console.width, 4)
                << '\n';
    for (const fit::Instant& instant : gpu.instants) {
      const fit::Range total = instant.total();
      console.out << wrap(fmt::format("  {}: {} ({} to {})", instant.name, to_string(total.expected),
                                      to_string(total.low), to_string(total.high)),
                          console.width, 4)
                  << '\n';
      for (const fit::Component& component : instant.components) {
        std::string text = fmt::format("    {} {}", fit::label_of(component.kind), to_string(component.expected));
        if (component.low != component.high)
          text += fmt::format(" ({} to {})", to_string(component.low), to_string(component.high));
        text += fmt::format(" = {} [{}]", printable(component.formula), printable(component.source));
        console.out << wrap(text, console.width, 6) << '\n';
      }
    }
  }
  for (const fit::Capacity& capacity : estimate.capacities)
    console.out << wrap(fmt::format("  {} = {} [{}]", capacity.name, printable(capacity.formula),
                                    printable(capacity.source)),
                        console.width, 6)
                << '\n';
}

void print_notes(const FitAnswer& answer, const Console& console) {
  std::vector<std::string> notes = answer.estimate.notes;
  for (const FitItem& item : answer.request->items)
    notes.insert(notes.end(), item.model.assumptions.begin(), item.model.assumptions.end());
  if (notes.empty()) return;
  console.out << '\n';
  for (const std::string& note : notes)
    console.out << paint(console, Tone::dim,
                         wrap(std::string(say(console, "note: ")) + printable(note), console.width, 6))
                << '\n';
}

}  // namespace

void print(const FitAnswer& answer, const Console& console) {
  print_header(answer, console);
  print_solution(answer, console);
  print_strategy(answer, console);
  print_choices(answer, console);
  print_gpus(answer.estimate, console);
  print_capacities(answer.estimate, console);
  print_advice(answer.estimate, console);
  if (answer.request->explain) print_explanation(answer.estimate, console);
  print_notes(answer, console);
}

}  // namespace gpuwright::cli
