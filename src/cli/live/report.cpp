// gpuwright report: what a recording shows, summed up.
#include "cli/live/report.h"

#include <map>
#include <utility>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/live/live.h"
#include "cli/live/select.h"
#include "device/recording.h"

namespace gpuwright::cli {
namespace {

Result<device::ReportOptions> read_options(const Arguments& arguments) {
  device::ReportOptions options;
  if (const auto idle = GW_TRY(arguments.number("--idle-after", 1, 366.0 * 86400)))
    options.idle_after = device::Seconds(*idle);
  if (const auto gap = GW_TRY(arguments.number("--max-gap", 1, 366.0 * 86400))) options.max_gap = device::Seconds(*gap);
  return options;
}

// The reporter counts the GPUs that it is given; people know them by the numbers of the recording.
class Numbers {
 public:
  void note(const device::Snapshot& snapshot) {
    for (const device::Gpu& gpu : snapshot.gpus) numbers_[{gpu.source, gpu.vendor_index}] = gpu.index;
  }
  void put_into(device::Report& report) const {
    std::map<int, int> number_of;
    for (device::GpuReport& one : report.gpus) {
      const auto found = numbers_.find({one.gpu.source, one.gpu.vendor_index});
      const int number = found == numbers_.end() ? one.gpu.index : found->second;
      number_of[one.gpu.index] = number;
      one.gpu.index = number;
    }
    for (device::HeldMemory& held : report.held) held.gpu = number_of.count(held.gpu) ? number_of[held.gpu] : held.gpu;
    for (device::Fault& fault : report.faults)
      fault.gpu = number_of.count(fault.gpu) ? number_of[fault.gpu] : fault.gpu;
  }

 private:
  std::map<std::pair<std::string, int>, int> numbers_;
};

Result<int> run_report(const Arguments& arguments, const Console& console) {
  device::Reporter reporter(GW_TRY(read_options(arguments)));
  const std::string path = *arguments.value("FILE");
  auto reader = GW_TRY(device::RecordingReader::open(path));
  const auto selection = arguments.value("--gpu");
  Numbers numbers;
  std::int64_t added = 0;
  while (auto snapshot = GW_TRY(reader.next())) {
    if (selection && !snapshot->gpus.empty()) keep_only(*snapshot, GW_TRY(select_gpus(*snapshot, *selection)));
    numbers.note(*snapshot);
    reporter.add(*snapshot);
    ++added;
  }
  for (const std::string& damage : reader.damage()) console.err << "note: " << printable(damage) << '\n';
  if (added == 0) return fail_at(ErrorCode::bad_input, {path, {}, {}}, "the recording holds no snapshot");
  device::Report report = reporter.finish();
  numbers.put_into(report);
  if (console.json)
    console.out << report_json(report, reader.damage()).dump() << '\n';
  else
    print_report(report, console);
  return kDone;
}

}  // namespace

Command report_command() {
  return {"report",
          "Sum up a recording: use, idle memory and its owners, energy, faults",
          "For every GPU: mean and 95th percentile of utilisation, memory, power and energy. For every user: GPU time "
          "and energy. Then who held memory while nothing computed, what held the clocks down, and what went wrong, "
          "in order of time. Figures are over the time in which the value was known; gaps in the recording do not "
          "count.",
          {{"FILE", "what 'gpuwright record' wrote", true, false, true}},
          {{.name = "--gpu",
            .value = "SELECT",
            .help = "only these: numbers and ranges (0,2-3), a UUID, a PCI address, part of a name"},
           {.name = "--idle-after",
            .value = "SECONDS",
            .help = "memory counts as held in idleness after so long without computing",
            .default_text = "600"},
           {.name = "--max-gap",
            .value = "SECONDS",
            .help = "snapshots further apart than this leave a gap",
            .default_text = "60"}},
          {{"gpuwright report night.gwr", "of a recording"},
           {"gpuwright report night.gwr --json", "for a program, with every process"}},
          {"0  done, also when the recording shows faults", "2  the file is no recording"},
          run_report};
}

}  // namespace gpuwright::cli
