#include "cli/run/explain_job.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/text.h"
#include "cli/explain_answer.h"
#include "cli/explain_fit.h"
#include "cli/run/advice.h"
#include "explain/lookup.h"

namespace gpuwright::cli {
namespace {

constexpr std::string_view kOwn = "run", kKernel = "kernel log";

std::string processes(std::int64_t count) {
  return fmt::format("{} process{}", count, count == 1 ? "" : "es");
}

void read(explain::Scanner& scanner, std::string_view source, const std::string& text) {
  if (text.empty()) return;
  scanner.begin(std::string(source));
  scanner.feed(text);
  scanner.end();
}

// It failed, and the rules see nothing: that is said, with the last alarming line where there is one.
void admit(explain::Explanation& explanation, const Outcome& outcome, bool chinese) {
  Finding& finding = explanation.findings.front();
  const bool silent = finding.kind == "healthy" || finding.kind == "benign" || finding.evidence.empty();
  if (explanation.findings.size() != 1 || !(silent || finding.kind == "unknown")) return;
  finding.id = finding.kind = "unknown";
  finding.severity = Severity::info;
  finding.confidence = 0;
  const std::string end = end_text(outcome.end);
  if (silent) {
    finding.title = chinese ? "无法判断原因" : "Cannot tell why";
    finding.cause = chinese ? fmt::format("作业失败（{}），但其输出没有说明原因。", end)
                            : fmt::format("The job {}, and nothing that it printed says why.", end);
  } else {
    finding.title = chinese ? "无法从输出判断原因" : "Cannot tell from what it printed";
    finding.cause = chinese ? fmt::format("作业失败（{}），没有规则认识其输出；最后的异常行如下。", end)
                            : fmt::format("The job {}. No rule knows the reason; the last alarming line:", end);
  }
}

}  // namespace

std::string sentences_on(const Outcome& outcome, const KernelSays& kernel) {
  std::string text;
  if (outcome.failed()) text += fmt::format("gpuwright run: the job {}\n", end_text(outcome.end));
  if (const std::int64_t kills = kernel.kills.in_cgroup.value_or(0); kills > 0)
    text += fmt::format(
        "gpuwright run: the kernel ended {} of the job's control group because its memory was used up (oom_kill)\n",
        processes(kills));
  if (outcome.end.signal == SIGKILL) {
    if (const std::int64_t kills = kernel.kills.on_host.value_or(0); kills > 0)
      text += fmt::format(
          "gpuwright run: the kernel ended {} of this host because memory was used up (oom_kill of /proc/vmstat)\n",
          processes(kills));
    const HostUse& host = outcome.gpus.host;
    if (host.processes > 0 && host.host_total && host.host_available)
      text += fmt::format(
          "gpuwright run: when last looked at, the job held {} of the host's memory, and {} of {} were available\n",
          to_string(host.resident), to_string(*host.host_available), to_string(*host.host_total));
  }
  for (const SeenXid& xid : outcome.gpus.xids) {
    // The kernel's own line says more.
    if (kernel.text.find(fmt::format("): {}", xid.event.code)) != std::string::npos) continue;
    text += fmt::format("gpuwright run: GPU {} ({}) reported Xid {}\n", xid.gpu,
                        xid.pci_address.empty() ? "address unknown" : xid.pci_address, xid.event.code);
  }
  return text;
}

explain::Explanation explain_job(const Outcome& outcome, Listener::Heard& heard, const KernelSays& kernel,
                                 const catalog::Catalog& catalog, const Console& console) {
  read(*heard.scanner, kKernel, kernel.text);
  read(*heard.scanner, kOwn, sentences_on(outcome, kernel));
  const bool chinese = console.language == Language::chinese;
  explain::ExplainOptions options;
  options.language = chinese ? "zh" : "en";
  options.lookup = explain::lookup_in(catalog);
  explain::Explanation explanation = explain::explain(*heard.book, heard.scanner->scan(), options);
  if (outcome.failed()) admit(explanation, outcome, chinese);
  // The command line is taken for what it seems to be: where fit has no use for it, there are no numbers.
  const auto text = bytes_in_memory(heard.ends, "output");
  const auto words = words_for_fit(outcome);
  static_cast<void>(
      add_answers_of_fit(words ? *words : gpu_words(outcome.gpus), text.get(), catalog, explanation, console));
  return explanation;
}

explain::LogInput sources_of(const explain::Explanation& explanation, const Outcome& outcome) {
  explain::LogInput input;
  const std::string& program = outcome.command.front();
  input.files.push_back(program.substr(program.rfind('/') + 1));
  for (const Finding& finding : explanation.findings)
    for (const Evidence& evidence : finding.evidence)
      if (std::find(input.files.begin(), input.files.end(), evidence.source) == input.files.end())
        input.files.push_back(evidence.source);
  return input;
}

}  // namespace gpuwright::cli
