// gpuwright free: which GPUs are free now, or wait until some are.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/signals.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/live/free_gpus.h"
#include "cli/live/live.h"
#include "cli/live/select.h"
#include "cli/live/stat_json.h"
#include "cli/live/stat_text.h"
#include "cli/live/values.h"
#include "cli/style.h"
#include "device/topology.h"

namespace gpuwright::cli {
namespace {

using device::Snapshot;
using Clock = std::chrono::steady_clock;

struct FreeRequest {
  FreeRules rules;
  std::optional<std::size_t> count;
  std::optional<double> wait;  // seconds; infinity without a limit
  double interval = 2;
  bool by_uuid = false;
};

struct FreeAnswer {
  std::vector<Judged> judged;
  std::vector<const device::Gpu*> chosen;
  std::string environment;  // that shows a program the chosen ones
  bool enough = false;
};

std::string name_of_user() {
  const passwd* entry = getpwuid(getuid());
  return entry && entry->pw_name ? entry->pw_name : fmt::format("{}", getuid());
}

const char* environment(const Arguments& arguments, const char* name) {
  // A simulated machine has an environment of its own: nothing is hidden in it.
  return arguments.has("--simulate") ? nullptr : std::getenv(name);
}

Result<FreeRequest> read_request(const Arguments& arguments) {
  FreeRequest request;
  if (const auto memory = arguments.value("--memory")) request.rules.memory = GW_TRY(parse_bytes(*memory));
  if (const auto percent = GW_TRY(arguments.number("--utilization", 0, 100)))
    request.rules.utilization = *percent / 100;
  request.rules.exclusive = arguments.has("--exclusive");
  request.rules.user = name_of_user();
  if (const auto count = GW_TRY(arguments.integer("--count", 1, 1024)))
    request.count = static_cast<std::size_t>(*count);
  if (arguments.has("--wait"))
    request.wait =
        GW_TRY(arguments.number("--wait", 0, 366.0 * 86400)).value_or(std::numeric_limits<double>::infinity());
  request.interval = GW_TRY(seconds_of(arguments, "--interval", 2));
  request.by_uuid = arguments.has("--uuid");
  return request;
}

// What a job scheduler or the user has hidden by CUDA_VISIBLE_DEVICES is not offered.
std::string hide_invisible(Snapshot& snapshot, const Arguments& arguments) {
  const char* visible = environment(arguments, "CUDA_VISIBLE_DEVICES");
  if (!visible) return {};
  const device::CudaView view = device::cuda_view(snapshot, visible, environment(arguments, "CUDA_DEVICE_ORDER"));
  std::vector<std::size_t> kept;
  for (std::size_t at = 0; at < snapshot.gpus.size(); ++at) {
    const device::Gpu& gpu = snapshot.gpus[at];
    const bool shown = std::find(view.gpus.begin(), view.gpus.end(), gpu.index) != view.gpus.end();
    if (gpu.vendor != device::Vendor::nvidia || shown) kept.push_back(at);
  }
  const std::size_t before = snapshot.gpus.size();
  keep_only(snapshot, kept);
  if (snapshot.gpus.size() == before && view.note.empty()) return {};
  return fmt::format("CUDA_VISIBLE_DEVICES={} leaves {} of {} GPUs{}{}", visible, snapshot.gpus.size(), before,
                     view.note.empty() ? "" : ": ", view.note);
}

// `export $(...)` loses the exit code: what it then starts finds no GPU rather than those of others.
constexpr std::string_view kNothingVisible = "CUDA_VISIBLE_DEVICES=\n";

// Of what may be taken; `whole` has the GPUs that runtimes count, too.
FreeAnswer answer_for(const Snapshot& snapshot, const Snapshot& whole, const FreeRequest& request) {
  FreeAnswer answer;
  answer.judged = judge(snapshot, request.rules);
  answer.chosen = choose(answer.judged, request.count);
  answer.environment = visible_devices(whole, answer.chosen, request.by_uuid);
  answer.enough = answer.chosen.size() >= request.count.value_or(1);
  return answer;
}

Json json_of(const Snapshot& snapshot, const FreeAnswer& answer, const std::string& note) {
  Json json = snapshot_head("gpuwright.free/1", snapshot);
  json.set("enough", answer.enough);
  json.set("environment", answer.enough ? Json(answer.environment) : Json());
  Json chosen = Json::array();
  for (const device::Gpu* gpu : answer.chosen) chosen.push(gpu->index);
  json.set("chosen", std::move(chosen));
  Json gpus = Json::array();
  for (const Judged& judged : answer.judged) {
    Json row = Json::object();
    row.set("index", judged.gpu->index);
    row.set("uuid", judged.gpu->uuid.optional());
    row.set("free", judged.obstacle.empty());
    row.set("obstacle", judged.obstacle.empty() ? Json() : Json(judged.obstacle));
    const auto& memory = judged.gpu->memory_free;
    row.set("memory_free_bytes", memory ? Json(memory->count) : Json());
    gpus.push(std::move(row));
  }
  json.set("gpus", std::move(gpus));
  json.set("note", note.empty() ? Json() : Json(note));
  // Nothing keeps another program from taking them before the caller does.
  json.set("reserved", false);
  return json;
}

void print_obstacles(const FreeAnswer& answer, const Console& console) {
  for (const Judged& judged : answer.judged)
    if (!judged.obstacle.empty())
      console.err << fmt::format("  GPU {} {}: {}\n", judged.gpu->index,
                                 printable(judged.gpu->name.value_or(std::string(to_string(judged.gpu->vendor)))),
                                 printable(judged.obstacle));
}

void print_answer(const Snapshot& snapshot, const FreeRequest& request, const FreeAnswer& answer,
                  const std::string& note, const Console& console) {
  if (console.json) {
    console.out << json_of(snapshot, answer, note).dump() << '\n';
    return;
  }
  const std::string banner = simulated_banner(snapshot);
  if (!banner.empty()) console.err << banner << '\n';
  if (!note.empty()) console.err << "note: " << printable(note) << '\n';
  if (answer.enough) {
    console.out << answer.environment << '\n';
    if (console.terminal)
      console.err << "free at this moment, not reserved: another program may take them before yours starts\n";
    return;
  }
  console.out << kNothingVisible;
  console.err << fmt::format("{} free, {} wanted\n", answer.chosen.size(), request.count.value_or(1));
  print_obstacles(answer, console);
}

void print_progress(const FreeRequest& request, const FreeAnswer& answer, double waited, const Console& console) {
  if (!console.terminal) return;
  console.err << fmt::format("\r\033[Kwaiting for {} free: {} now, {} (Ctrl-C ends)", request.count.value_or(1),
                             answer.chosen.size(), duration_text(waited));
}

Result<int> run_free(const Arguments& arguments, const Console& console) {
  const FreeRequest request = GW_TRY(read_request(arguments));
  device::Wants wants;
  wants.process_utilization = false;
  // Runtimes count all GPUs, whichever --gpu leaves to choose from.
  Arguments of_all = arguments;
  of_all.remove("--gpu");
  auto feed = GW_TRY(open_feed(of_all, wants));
  Signals signals;
  const auto begin = Clock::now();
  bool shows_progress = false;
  while (true) {
    const Snapshot whole = GW_TRY(next_snapshot(*feed));
    Snapshot snapshot = whole;
    if (const auto selection = arguments.value("--gpu"); selection && !whole.gpus.empty())
      keep_only(snapshot, GW_TRY(select_gpus(whole, *selection)));
    if (is_missing(snapshot) && snapshot.gpus.empty() && !console.json) {
      console.out << kNothingVisible;
      return report_missing(snapshot, console);
    }
    const std::string note = hide_invisible(snapshot, arguments);
    const FreeAnswer answer = answer_for(snapshot, whole, request);
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    if (answer.enough || waited >= request.wait.value_or(0)) {
      if (shows_progress) console.err << "\r\033[K";
      print_answer(snapshot, request, answer, note, console);
      if (snapshot.gpus.empty() && note.empty()) return kMissing;
      return answer.enough ? kDone : kAnswerIsNo;
    }
    print_progress(request, answer, waited, console);
    shows_progress = console.terminal;
    const double pause = std::min(request.interval, *request.wait - waited);
    const int signal = signals.wait(std::chrono::milliseconds(static_cast<std::int64_t>(pause * 1000) + 1));
    if (!asks_to_end(signal)) continue;
    if (shows_progress) console.err << '\n';
    return 128 + signal;
  }
}

std::vector<Option> free_options() {
  std::vector<Option> options = {
      {.name = "--count",
       .short_name = "-n",
       .value = "N",
       .help = "as many are needed; without it: all that are free"},
      {.name = "--memory",
       .short_name = "-m",
       .value = "SIZE",
       .help = "so much memory must be free on each, whoever else is there; without it: nearly all, and no process"},
      {.name = "--utilization", .short_name = "-u", .value = "PERCENT", .help = "at most", .default_text = "10"},
      {.name = "--exclusive", .help = "with --memory: still no process of another user"},
      {.name = "--wait",
       .value = "SECONDS",
       .help = "wait until there are enough, at most so long",
       .default_text = "without a limit",
       .optional_value = true,
       .accepts = is_seconds},
      {.name = "--interval",
       .short_name = "-i",
       .value = "SECONDS",
       .help = "with --wait: look so often",
       .default_text = "2"},
      {.name = "--uuid", .help = "print UUIDs instead of numbers"},
  };
  for (Option& option : live_options(Replay::no)) options.push_back(std::move(option));
  return options;
}

}  // namespace

Command free_command() {
  return {"free",
          "Find GPUs that are free now, or wait for them",
          "Prints the environment that makes a program take the free GPUs, as words for export or env:\n"
          "  export $(gpuwright free -n 2)\n\n"
          "Free is a GPU on which no process computes, with nearly all of its memory free and hardly used; with "
          "--memory, one on which so much memory is free. GPUs that CUDA_VISIBLE_DEVICES hides are not offered, nor "
          "those that are lost, need a reset or are cut into MIG instances. Numbers are in the order of the bus, which "
          "the printed CUDA_DEVICE_ORDER asks CUDA for, too.\n\n"
          "Where there are not enough, the printed environment hides all GPUs, so that a script that does not look at "
          "the exit code does not take those of others.\n\n"
          "Nothing is reserved: between this answer and the start of your program another one may take the GPU. Where "
          "several people share a machine, a scheduler prevents that; this command does not.",
          {},
          free_options(),
          {{"export $(gpuwright free -n 2)", "two free GPUs for what is started from this shell"},
           {"env $(gpuwright free -n 1 --memory 20GiB) python train.py", "one with 20 GiB free, also beside others"},
           {"gpuwright free -n 4 --wait 3600 --json", "wait up to an hour for four"},
           {"gpuwright free --simulate", "what it looks like on a machine with GPUs"}},
          {"0  there are enough, and they are printed", "1  there are not enough",
           "3  no GPU answers: none was found, or none has a driver", "128+N  ended by signal N"},
          run_free};
}

}  // namespace gpuwright::cli
