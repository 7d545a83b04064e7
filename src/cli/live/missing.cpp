// What is said where no GPU answers: what was looked for, what came of it, and what to do.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/live/live.h"
#include "cli/live/stat_text.h"
#include "cli/style.h"

namespace gpuwright::cli {
namespace {

using device::SourceReport;

bool is_found(const device::Snapshot& snapshot, const std::string& source) {
  return std::any_of(snapshot.gpus.begin(), snapshot.gpus.end(),
                     [&](const device::Gpu& gpu) { return gpu.source == source; });
}

// A driver that is there and fails as a whole (library and kernel module of different versions) is something that
// is missing, whatever other GPUs there are.
bool has_failed_driver(const device::Snapshot& snapshot) {
  return std::any_of(snapshot.sources.begin(), snapshot.sources.end(), [&](const SourceReport& report) {
    return report.outcome == SourceReport::Outcome::failed && !is_found(snapshot, report.source);
  });
}

void print_reports(const device::Snapshot& snapshot, const Console& console) {
  const int width = std::max(console.width, 60);
  for (const SourceReport& report : snapshot.sources) {
    if (report.outcome == SourceReport::Outcome::found) continue;
    const bool failed = report.outcome == SourceReport::Outcome::failed;
    const std::string text = printable(report.text) + (report.hint.empty() ? "" : "\n-> " + printable(report.hint));
    console.err << fmt::format("  {:<8} ", report.source)
                << paint(console, failed ? Tone::bad : Tone::plain, wrap(text, width, 11)) << '\n';
  }
}

}  // namespace

bool is_missing(const device::Snapshot& snapshot) {
  const bool answers = std::any_of(snapshot.gpus.begin(), snapshot.gpus.end(),
                                   [](const device::Gpu& gpu) { return gpu.state != device::State::no_driver; });
  return !answers || has_failed_driver(snapshot);
}

int report_missing(const device::Snapshot& snapshot, const Console& given) {
  if (!is_missing(snapshot)) return kDone;
  if (given.json) return kMissing;
  Console console = given;
  console.color = given.color && given.terminal;
  given.out.flush();
  if (const std::string banner = simulated_banner(snapshot); !banner.empty())
    console.err << paint(console, Tone::warning, banner) << '\n';
  console.err << (snapshot.gpus.empty() ? "gpuwright: no GPU was found. What was looked for:\n"
                                        : "gpuwright: not every GPU can be read. What was looked for:\n");
  print_reports(snapshot, console);
  if (snapshot.gpus.empty() && snapshot.simulated.empty())
    console.err << "To see what it looks like with GPUs: add --simulate\n";
  return kMissing;
}

Result<int> check_beforehand(Feed& feed, const Console& console) {
  if (feed.is_recording()) return kDone;
  const device::Snapshot snapshot = GW_TRY(next_snapshot(feed));
  return snapshot.gpus.empty() ? report_missing(snapshot, console) : kDone;
}

}  // namespace gpuwright::cli
