// Where snapshots come from, and the options that choose.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/live/live.h"
#include "cli/live/select.h"
#include "cli/live/values.h"
#include "device/recording.h"
#include "sim/host.h"

namespace gpuwright::cli {
namespace {

constexpr double kLongest = 366.0 * 86400;

// Scenario files; names of built-in ones are the choices of --simulate.
bool is_scenario_file(std::string_view word) {
  return word.size() > 5 && word.substr(word.size() - 5) == ".toml";
}

Status apply_selection(device::Snapshot& snapshot, const std::optional<std::string>& selection) {
  if (!selection || snapshot.gpus.empty()) return {};
  keep_only(snapshot, GW_TRY(select_gpus(snapshot, *selection)));
  return {};
}

class LiveFeed : public Feed {
 public:
  LiveFeed(device::ReaderOptions options, std::optional<std::string> selection, std::optional<double> stopped_at)
      : reader_(std::move(options)), selection_(std::move(selection)), stopped_at_(stopped_at) {}

  Result<std::optional<device::Snapshot>> next() override {
    device::Snapshot snapshot = reader_.read();
    GW_TRY(apply_selection(snapshot, selection_));
    return std::optional(std::move(snapshot));
  }
  std::string note() const override {
    return stopped_at_ ? duration_text(*stopped_at_) + " after its start" : std::string();
  }
  bool tells_time() const override { return !stopped_at_; }

 private:
  device::Reader reader_;
  std::optional<std::string> selection_;
  std::optional<double> stopped_at_;
};

class ReplayFeed : public Feed {
 public:
  ReplayFeed(device::RecordingReader reader, std::string path, std::optional<std::string> selection)
      : reader_(std::move(reader)), path_(std::move(path)), selection_(std::move(selection)) {}

  // Without a moment to begin at, one answer shows how it ended.
  void go_to(std::optional<double> seconds) {
    const auto offset = static_cast<std::int64_t>(seconds.value_or(0) * 1e9);
    reader_.seek(seconds ? device::UnixTime{reader_.first().nanoseconds + offset} : reader_.last());
    ahead_.reset();
  }

  Result<std::optional<device::Snapshot>> next() override {
    std::optional<device::Snapshot> snapshot = std::move(ahead_);
    ahead_.reset();
    if (!snapshot) snapshot = GW_TRY(reader_.next());
    if (!snapshot) return snapshot;
    shown_ = snapshot->time;
    ahead_ = GW_TRY(reader_.next());
    GW_TRY(apply_selection(*snapshot, selection_));
    return snapshot;
  }

  std::optional<double> seconds_to_next() const override {
    if (!ahead_) return 0.0;
    return std::max(static_cast<double>(ahead_->time.nanoseconds - shown_.nanoseconds) / 1e9, 0.0);
  }
  std::string note() const override {
    const double seconds = static_cast<double>(shown_.nanoseconds - reader_.first().nanoseconds) / 1e9;
    return fmt::format("recorded in {}, {} after its start", path_, duration_text(seconds));
  }
  bool is_recording() const override { return true; }

 private:
  device::RecordingReader reader_;
  std::string path_;
  std::optional<std::string> selection_;
  std::optional<device::Snapshot> ahead_;
  device::UnixTime shown_;
};

Result<std::unique_ptr<Feed>> open_recording(const std::string& path, const Arguments& arguments, bool repeats) {
  const auto at = GW_TRY(arguments.number("--at", 0, kLongest));
  auto reader = GW_TRY(device::RecordingReader::open(path));
  if (reader.frames() == 0)
    return fail_at(ErrorCode::bad_input, {path, {}, {}}, "the recording holds no snapshot",
                   reader.damage().empty() ? "" : reader.damage().front());
  auto feed = std::make_unique<ReplayFeed>(std::move(reader), path, arguments.value("--gpu"));
  if (at || !repeats) feed->go_to(at);
  return std::unique_ptr<Feed>(std::move(feed));
}

Result<std::shared_ptr<sim::Host>> simulated_host(const Arguments& arguments) {
  auto host = GW_TRY(sim::Host::from_scenario(arguments.value("--simulate").value_or(sim::default_scenario())));
  if (const auto at = GW_TRY(arguments.number("--at", 0, kLongest))) host->set_time(*at);
  return host;
}

Status check_combination(const Arguments& arguments) {
  const auto both = [&](const char* a, const char* b) { return arguments.has(a) && arguments.has(b); };
  if (both("--simulate", "--replay"))
    return fail(ErrorCode::bad_input, "--simulate and --replay exclude each other", "give one of them");
  if (both("--simulate", "--root"))
    return fail(ErrorCode::bad_input, "--simulate and --root exclude each other", "give one of them");
  if (both("--replay", "--root") || both("--replay", "--wake"))
    return fail(ErrorCode::bad_input, "a recording is not read from this machine", "leave out --root and --wake");
  if (arguments.has("--at") && !arguments.has("--simulate") && !arguments.has("--replay"))
    return fail(ErrorCode::bad_input, "--at belongs to --simulate or --replay");
  return {};
}

}  // namespace

std::vector<Option> live_options(Replay replay) {
  const std::string group = "Which GPUs";
  std::vector<Option> options;
  const auto add = [&](const char* name, const char* value, const char* help) -> Option& {
    Option& option = options.emplace_back();
    option.name = name;
    option.value = value;
    option.help = help;
    option.group = group;
    return option;
  };
  add("--gpu", "SELECT", "only these: numbers and ranges (0,2-3), a UUID, a PCI address, part of a name");
  add("--wake", "", "read sleeping GPUs, too, which wakes them");
  add("--root", "DIR", "look under DIR instead of / (a captured /sys and /proc)");
  Option& simulate = add("--simulate", "SCENARIO", "a simulated host: a built-in scenario or a file.toml");
  simulate.choices = sim::built_in_names();
  simulate.optional_value = true;
  simulate.accepts = is_scenario_file;
  simulate.default_text = sim::default_scenario();
  if (replay == Replay::yes) {
    add("--replay", "FILE", "what was recorded with 'gpuwright record'");
    add("--at", "SECONDS", "with --simulate or --replay: the moment so long after the start");
  } else {
    add("--at", "SECONDS", "with --simulate: the moment so long after the start");
  }
  return options;
}

Result<std::unique_ptr<Feed>> open_feed(const Arguments& arguments, const device::Wants& wants, bool repeats) {
  GW_TRY(check_combination(arguments));
  if (const auto path = arguments.value("--replay")) return open_recording(*path, arguments, repeats);
  device::ReaderOptions options;
  options.sources = GW_TRY(source_options(arguments, wants));
  const auto at = GW_TRY(arguments.number("--at", 0, kLongest));
  return std::unique_ptr<Feed>(std::make_unique<LiveFeed>(std::move(options), arguments.value("--gpu"), at));
}

Result<device::SourceOptions> source_options(const Arguments& arguments, const device::Wants& wants) {
  device::SourceOptions options;
  options.wants = wants;
  options.wake = arguments.has("--wake");
  options.root = arguments.value("--root").value_or("");
  // A library of this machine knows nothing of the files under another root.
  if (!options.root.empty()) options.nvml_library = options.dcmi_library = "";
  if (arguments.has("--simulate")) options.simulated = GW_TRY(simulated_host(arguments));
  return options;
}

Result<device::Snapshot> next_snapshot(Feed& feed) {
  auto snapshot = GW_TRY(feed.next());
  if (!snapshot) return fail(ErrorCode::bad_input, "the recording holds no snapshot");
  return std::move(*snapshot);
}

Result<double> seconds_of(const Arguments& arguments, std::string_view option, double otherwise) {
  return GW_TRY(arguments.number(option, 0.05, 86400)).value_or(otherwise);
}

Option watch_option() {
  return {.name = "--watch",
          .short_name = "-w",
          .value = "SECONDS",
          .help = "again and again; a terminal is redrawn (q ends)",
          .default_text = "1",
          .optional_value = true,
          .accepts = is_seconds};
}

bool is_seconds(std::string_view word) {
  return to_number(word).has_value();
}

}  // namespace gpuwright::cli
