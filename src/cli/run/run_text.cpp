#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/explain_answer.h"
#include "cli/live/values.h"
#include "cli/run/explain_job.h"
#include "cli/run/run_report.h"
#include "cli/style.h"
#include "cli/table.h"

namespace gpuwright::cli {
namespace {

constexpr double kMinute = 60;
constexpr std::size_t kMostXids = 10;

class Printer {
 public:
  Printer(const Outcome& outcome, const Console& console)
      : outcome_(outcome), console_(console), chinese_(console.language == Language::chinese) {}

  void print() {
    head();
    if (outcome_.failed()) {
      explanation();
      memory_to_the_end();
    } else {
      alarms();
    }
    gpus();
    xids();
    for (const RunAdvice& advice : outcome_.advice)
      console_.out << wrap("  " + std::string(say("advice: ", "建议：")) + advice.text, console_.width, 4) << '\n';
    for (const std::string& note : outcome_.notes)
      console_.out << wrap(std::string(say("note: ", "注：")) + printable(note), console_.width, 6) << '\n';
  }

 private:
  std::string_view say(std::string_view english, std::string_view chinese) const {
    return chinese_ ? chinese : english;
  }

  std::string time() const {
    return outcome_.seconds < 10 ? fmt::format("{:.1f}s", std::max(outcome_.seconds, 0.1))
                                 : duration_text(outcome_.seconds);
  }

  void head() {
    // The same words as the rules know (data/errors_job.toml).
    const std::string end = outcome_.failed() ? "the job " + end_text(outcome_.end) : "the job ended well";
    std::string line =
        fmt::format("gpuwright run: {} {}", end, fmt::format(fmt::runtime(say("after {}", "（用时 {}）")), time()));
    if (outcome_.gpus.of_job().empty()) line += why_no_gpu();
    console_.out << paint(console_, outcome_.failed() ? Tone::bad : Tone::good, line) << '\n';
    if (!outcome_.gpus.simulated.empty())
      console_.out << paint(console_, Tone::warning,
                            fmt::format("SIMULATED ({}): the GPUs here are of no real machine",
                                        printable(outcome_.gpus.simulated)))
                   << '\n';
  }

  std::string why_no_gpu() const {
    if (!outcome_.gpus.error.empty()) return "; " + outcome_.gpus.error;
    if (outcome_.gpus.snapshots == 0) return std::string(say("; it ended before the GPUs were read", "；未及读取 GPU"));
    if (outcome_.gpus.gpus.empty()) return std::string(say("; no GPU was found", "；未发现 GPU"));
    return std::string(say("; it was not seen on a GPU", "；未见其使用 GPU"));
  }

  void explanation() {
    if (!outcome_.explanation) return;
    console_.out << '\n';
    print_explanation(*outcome_.explanation, sources_of(*outcome_.explanation, outcome_), console_);
  }

  void alarms() {
    if (!outcome_.explanation) return;
    for (const Finding& finding : outcome_.explanation->findings) {
      if (finding.severity < Severity::warning || finding.role != Role::cause) continue;
      const std::int64_t line = finding.evidence.empty() ? 0 : finding.evidence.front().line;
      console_.out << wrap(fmt::format("  {}{} ({}{})", say("in what it printed: ", "输出中："), finding.title,
                                       finding.kind, line > 0 ? fmt::format(", line {}", line) : ""),
                           console_.width, 4)
                   << '\n';
    }
  }

  const WatchedGpu* fullest() const {
    const WatchedGpu* most = nullptr;
    for (const WatchedGpu* gpu : outcome_.gpus.of_job())
      if (!gpu->memory.empty() && (most == nullptr || gpu->memory.peak().size > most->memory.peak().size)) most = gpu;
    return most;
  }

  void memory_to_the_end() {
    const WatchedGpu* gpu = fullest();
    if (gpu == nullptr) return;
    const Curve::Point peak = gpu->memory.peak();
    const std::string of = gpu->gpu.memory_total ? fmt::format(" of {}", memory_text(*gpu->gpu.memory_total)) : "";
    const std::string what = gpu->claim == Claim::growth ? std::string(say("Memory used on", "显存占用（整卡）："))
                                                         : std::string(say("Memory of the job on", "作业显存："));
    print_heading(console_, fmt::format("{} GPU {}", what, gpu->gpu.index));
    console_.out << wrap(fmt::format("  {}: {} {}{}, {} {}", printable(gpu->gpu.name.value_or("GPU")),
                                     say("at most", "峰值"), memory_text(peak.size), of,
                                     duration_text(std::max(outcome_.seconds - peak.seconds, 0.0)),
                                     say("before the end", "前")),
                         console_.width, 4)
                 << '\n';
    print_memory_chart(*gpu, outcome_.seconds, console_);
    if (outcome_.seconds < 2 * kMinute) return;
    const auto minute = gpu->memory.last_seconds(kMinute);
    console_.out << fmt::format("  {}: {} -> {}\n", say("in the last minute", "最后一分钟"),
                                memory_text(minute.front().size), memory_text(minute.back().size));
  }

  const device::GpuReport* report_of(const WatchedGpu& gpu) const {
    for (const device::GpuReport& report : outcome_.gpus.report.gpus)
      if (report.gpu.index == gpu.gpu.index) return &report;
    return nullptr;
  }

  void gpus() {
    const auto of_job = outcome_.gpus.of_job();
    if (of_job.empty()) return;
    const auto right = Align::right;
    Table table({{"GPU", right},
                 {std::string(say("name", "名称")), Align::left, true},
                 {std::string(say("memory peak", "显存峰值")), right},
                 {std::string(say("of", "总量")), right, false, 2},
                 {std::string(say("util", "利用率")), right},
                 {"p95", right},
                 {std::string(say("energy", "能耗")), right, false, 3},
                 {std::string(say("clocks held", "降频")), right, false, 1}},
                outcome_.failed() ? 2 : 0);
    if (outcome_.failed()) print_heading(console_, say("Its GPUs", "所用 GPU"));
    for (const WatchedGpu* gpu : of_job) add_row(*gpu, table);
    table.print(console_);
    const bool growth =
        std::any_of(of_job.begin(), of_job.end(), [](const WatchedGpu* gpu) { return gpu->claim == Claim::growth; });
    if (growth)
      console_.out << wrap(
                          std::string("  ") +
                              std::string(say("The driver names no process of the job: a GPU counts as its own where "
                                              "memory grew while it ran, and the figures are those of the whole GPU.",
                                              "驱动未列出作业的进程：运行期间显存增长的 GPU 视为其所用，数字为整卡。")),
                          console_.width, 2)
                   << '\n';
  }

  void add_row(const WatchedGpu& gpu, Table& table) const {
    const device::GpuReport* report = report_of(gpu);
    const bool used = report != nullptr && report->utilization.has_value();
    const auto percent = [](Ratio ratio) { return fmt::format("{:.0f}%", ratio.value * 100); };
    table.add({{fmt::format("{}", gpu.gpu.index), Tone::heading},
               {gpu.gpu.name.value_or(std::string(to_string(gpu.gpu.vendor))), Tone::name},
               gpu.memory.empty() ? unknown_cell() : Cell(memory_text(gpu.memory.peak().size)),
               gpu.gpu.memory_total ? Cell(memory_text(*gpu.gpu.memory_total)) : unknown_cell(),
               used ? Cell(percent(report->utilization->mean)) : unknown_cell(),
               used ? Cell(percent(report->utilization->p95)) : unknown_cell(),
               report != nullptr && report->energy ? Cell(fmt::format("{:.1f} Wh", report->energy->total.value / 3600))
                                                   : unknown_cell(),
               throttled(report)});
  }

  static Cell throttled(const device::GpuReport* report) {
    if (report == nullptr || report->throttle_known.count() <= 0) return unknown_cell();
    double most = 0;
    for (const auto& [reason, time] : report->throttled) most = std::max(most, time.count());
    return Cell(fmt::format("{:.0f}%", most / report->throttle_known.count() * 100));
  }

  void xids() {
    const auto& xids = outcome_.gpus.xids;
    for (std::size_t i = 0; i < std::min(xids.size(), kMostXids); ++i)
      console_.out << paint(console_, Tone::bad,
                            fmt::format("  GPU {}: Xid {}{}, {}", xids[i].gpu, xids[i].event.code,
                                        xids[i].event.count > 1 ? fmt::format(" ({} times)", xids[i].event.count) : "",
                                        local_time(xids[i].event.time)))
                   << '\n';
    for (const WatchedGpu& gpu : outcome_.gpus.gpus)
      if (gpu.claim != Claim::none && gpu.state != device::State::ok)
        console_.out << paint(console_, Tone::bad,
                              wrap(fmt::format("  GPU {}: {}{}", gpu.gpu.index, to_string(gpu.state),
                                               gpu.state_detail.empty() ? "" : ": " + printable(gpu.state_detail)),
                                   console_.width, 4))
                     << '\n';
  }

  const Outcome& outcome_;
  const Console& console_;
  bool chinese_;
};

}  // namespace

void print_outcome(const Outcome& outcome, const Console& console) {
  Printer(outcome, console).print();
}

}  // namespace gpuwright::cli
