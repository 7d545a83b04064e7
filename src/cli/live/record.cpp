// gpuwright record: snapshots into a file, for later.
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "base/signals.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/live/live.h"
#include "cli/live/stat_json.h"
#include "cli/live/stat_text.h"
#include "cli/live/values.h"
#include "device/recording.h"

namespace gpuwright::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct RecordRequest {
  std::string path;
  double interval = 1;
  std::optional<double> duration;
  device::RecordingOptions options;
};

// "90", "90s", "15m", "8h", "2d".
Result<std::optional<double>> read_duration(const Arguments& arguments) {
  const auto text = arguments.value("--duration");
  if (!text) return std::optional<double>{};
  constexpr std::pair<char, double> kUnits[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
  double factor = 1;
  std::string_view number = *text;
  for (const auto& [unit, seconds] : kUnits)
    if (!number.empty() && number.back() == unit) {
      factor = seconds;
      number.remove_suffix(1);
      break;
    }
  const auto value = to_number(number);
  if (!value || *value <= 0 || *value * factor > 366.0 * 86400)
    return fail(ErrorCode::bad_input, fmt::format("--duration takes a time up to a year, not '{}'", *text),
                "for example 90s, 15m, 8h or 2d");
  return std::optional(*value * factor);
}

Result<RecordRequest> read_request(const Arguments& arguments) {
  RecordRequest request;
  request.path = *arguments.value("FILE");
  request.interval = GW_TRY(seconds_of(arguments, "--interval", 1));
  request.duration = GW_TRY(read_duration(arguments));
  if (const auto size = arguments.value("--max-size")) {
    request.options.max_size = GW_TRY(parse_bytes(*size));
    if (request.options.max_size < device::kSmallestRecording)
      return fail(ErrorCode::bad_input,
                  fmt::format("--max-size is at least {}", to_string(device::kSmallestRecording)));
  }
  return request;
}

class Recorder {
 public:
  Recorder(RecordRequest request, device::RecordingWriter writer, const Console& console)
      : request_(std::move(request)), writer_(std::move(writer)), console_(console) {}

  Result<int> run(Feed& feed) {
    Signals signals;
    auto due = Clock::now();
    while (true) {
      const device::Snapshot snapshot = GW_TRY(next_snapshot(feed));
      if (writer_.frames() == 0 && is_missing(snapshot) && snapshot.gpus.empty())
        return report_missing(snapshot, console_);
      GW_TRY(writer_.append(snapshot));
      print_progress(snapshot);
      if (request_.duration && elapsed() + request_.interval > *request_.duration + 1e-6) return finish(snapshot);
      due = std::max(due + std::chrono::milliseconds(std::llround(request_.interval * 1000)), Clock::now());
      // Asked at least once, also where reading takes longer than the interval.
      do {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now());
        if (asks_to_end(signals.wait(std::max(left, std::chrono::milliseconds(0))))) return finish(snapshot);
      } while (Clock::now() < due);
    }
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  void print_progress(const device::Snapshot& snapshot) {
    if (!console_.terminal) return;
    const std::string of = request_.duration ? " of " + duration_text(*request_.duration) : "";
    console_.err << fmt::format("\r\033[K{}recording {} GPUs: {} snapshots, {}, {}{} (Ctrl-C ends)",
                                snapshot.simulated.empty() ? "" : "SIMULATED: ", snapshot.gpus.size(), writer_.frames(),
                                to_string(writer_.bytes_written()), duration_text(elapsed()), of);
  }

  // Being asked to end is the ordinary end of a recording.
  int finish(const device::Snapshot& snapshot) {
    if (console_.terminal) console_.err << "\r\033[K";
    if (console_.json) {
      Json answer = snapshot_head("gpuwright.record/1", snapshot);
      answer.set("file", request_.path);
      answer.set("snapshots", writer_.frames());
      answer.set("bytes_written", writer_.bytes_written().count);
      answer.set("note", writer_.note().empty() ? Json() : Json(writer_.note()));
      console_.out << answer.dump() << '\n';
      return kDone;
    }
    print_banner(snapshot, console_);
    console_.out << fmt::format("{}: {} snapshots in {}, {}\n", printable(request_.path), writer_.frames(),
                                duration_text(elapsed()), to_string(writer_.bytes_written()));
    return kDone;
  }

  RecordRequest request_;
  device::RecordingWriter writer_;
  const Console& console_;
  Clock::time_point begin_ = Clock::now();
};

Result<int> run_record(const Arguments& arguments, const Console& console) {
  RecordRequest request = GW_TRY(read_request(arguments));
  device::Wants wants;
  wants.traffic = wants.activity = true;
  auto feed = GW_TRY(open_feed(arguments, wants));
  auto writer = GW_TRY(device::RecordingWriter::open(request.path, request.options));
  if (!writer.note().empty()) console.err << "note: " << printable(writer.note()) << '\n';
  return Recorder(std::move(request), std::move(writer), console).run(*feed);
}

std::vector<Option> record_options() {
  std::vector<Option> options = {
      {.name = "--interval", .short_name = "-i", .value = "SECONDS", .help = "between snapshots", .default_text = "1"},
      {.name = "--duration", .short_name = "-d", .value = "TIME", .help = "end after 90s, 15m, 8h or 2d"},
      {.name = "--max-size",
       .value = "SIZE",
       .help = "of the recording with its parts (FILE.1 to FILE.3); beyond it the oldest is dropped",
       .default_text = "1GiB"},
  };
  for (Option& option : live_options(Replay::no)) options.push_back(std::move(option));
  return options;
}

}  // namespace

Command record_command() {
  return {"record",
          "Record what the GPUs do, for later",
          "Writes a snapshot of all GPUs and processes into FILE at every interval, until it is ended (Ctrl-C is the "
          "ordinary way) or the duration is over. The file is whole after every snapshot, also if the program is "
          "killed; recording into it again goes on. 'stat --replay' and 'ps --replay' show it as if it were now, "
          "'report' sums it up.",
          {{"FILE", "the recording", true, false, true}},
          record_options(),
          {{"gpuwright record night.gwr --interval 10 --duration 8h", "a night, every ten seconds"},
           {"gpuwright stat --replay night.gwr --watch", "watch it again"}},
          {"0  done, also when ended by Ctrl-C", "2  the file is no recording, or one of another machine",
           "3  no GPU was found, or the file cannot be written"},
          run_record};
}

}  // namespace gpuwright::cli
