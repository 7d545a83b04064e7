// gpuwright ps: who uses the GPUs.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/live/kill.h"
#include "cli/live/live.h"
#include "cli/live/processes.h"
#include "cli/live/stat_json.h"
#include "cli/live/stat_text.h"
#include "cli/live/stream.h"
#include "cli/live/values.h"
#include "cli/live/watch.h"

namespace gpuwright::cli {
namespace {

using device::Snapshot;

bool are_process_groups(std::string_view word) {
  return check_process_groups(word).has_value();
}

Json ps_json(const Snapshot& snapshot) {
  Json answer = snapshot_head("gpuwright.ps/1", snapshot);
  Json processes = Json::array();
  for (const device::Process* process : in_order(snapshot)) processes.push(object_of(fields_of(*process)));
  Json rests = Json::array();
  for (const device::Gpu& gpu : snapshot.gpus) {
    const auto rest = unattributed_memory(snapshot, gpu);
    Json json = Json::object();
    json.set("gpu", gpu.index);
    json.set("memory_bytes", rest ? Json(rest->count) : Json());
    if (!rest) json.set("unknown", to_string(rest.why()));
    rests.push(std::move(json));
  }
  answer.set("processes", std::move(processes));
  answer.set("unattributed", std::move(rests));
  return answer;
}

void print_csv(const Snapshot& snapshot, bool titles, const Console& console) {
  const auto with_simulated = [&](std::vector<std::string> cells, const std::string& value) {
    if (!snapshot.simulated.empty()) cells.push_back(value);
    return csv_line(cells);
  };
  if (titles) {
    std::vector<std::string> names = {"time"};
    for (std::string& name : process_field_names()) names.push_back(std::move(name));
    console.out << with_simulated(std::move(names), "simulated");
  }
  for (const device::Process* process : in_order(snapshot)) {
    std::vector<std::string> cells = {iso_time(snapshot.time)};
    for (const Field& field : fields_of(*process)) cells.push_back(csv_cell(field.value));
    console.out << with_simulated(std::move(cells), csv_cell(snapshot.simulated));
  }
}

void print_text(const Snapshot& snapshot, std::optional<int> lines, const Console& console) {
  print_banner(snapshot, console);
  const int banner = snapshot.simulated.empty() ? 0 : 1;
  print_processes(snapshot, lines ? std::optional(*lines - banner) : std::nullopt, console);
}

Status check_forms(const Arguments& arguments, const Console& console) {
  if (console.json + arguments.has("--csv") + arguments.has("--stream") > 1)
    return fail(ErrorCode::bad_input, "--json, --csv and --stream exclude each other", "give one of them");
  if (arguments.has("--stream") && arguments.has("--watch"))
    return fail(ErrorCode::bad_input, "--stream repeats by itself", "--interval sets how often");
  if (arguments.has("--kill") && arguments.has("--replay"))
    return fail(ErrorCode::bad_input, "a recorded process cannot be ended", "leave out --replay");
  if (!arguments.has("--kill") && (arguments.has("--signal") || arguments.has("--yes")))
    return fail(ErrorCode::bad_input, "--signal and --yes belong to --kill", "say which: --kill PID");
  return {};
}

Result<int> run_kill(const Arguments& arguments, Feed& feed, const Console& console) {
  const auto pid = GW_TRY(arguments.integer("--kill", 2, std::numeric_limits<int>::max()));
  const int signal = GW_TRY(signal_named(arguments.value("--signal").value_or("TERM")));
  const Snapshot snapshot = GW_TRY(next_snapshot(feed));
  if (snapshot.gpus.empty()) return report_missing(snapshot, console);
  return kill_gpu_process(snapshot, *pid, signal, arguments.has("--yes"), console);
}

void print_one(const Snapshot& snapshot, std::int64_t number, const Arguments& arguments, bool repeats,
               const Console& console) {
  if (console.json) {
    console.out << ps_json(snapshot).dump(repeats ? 0 : 2) << '\n';
  } else if (arguments.has("--csv")) {
    print_csv(snapshot, number == 0, console);
  } else if (arguments.has("--stream")) {
    const std::string groups = arguments.value("--stream").value_or(std::string(kProcessGroups));
    if (number == 0 && !snapshot.simulated.empty()) console.out << "# " << simulated_banner(snapshot) << '\n';
    if (number == 0 || (!console.wide && number % 10 == 0)) console.out << process_stream_header(groups);
    console.out << process_stream_lines(snapshot, groups);
  } else {
    if (number > 0) console.out << '\n';
    print_text(snapshot, std::nullopt, console);
  }
  console.out.flush();
}

Result<int> run_ps(const Arguments& arguments, const Console& console) {
  GW_TRY(check_forms(arguments, console));
  if (const auto groups = arguments.value("--stream")) GW_TRY(check_process_groups(*groups));
  Pace pace;
  pace.count = GW_TRY(arguments.integer("--count", 1, 1'000'000'000));
  pace.seconds = GW_TRY(seconds_of(arguments, "--interval", 1));
  if (!arguments.has("--stream")) pace.seconds = GW_TRY(seconds_of(arguments, "--watch", pace.seconds));
  const bool repeats = arguments.has("--stream") || arguments.has("--watch") || pace.count.value_or(1) > 1;
  device::Wants wants;
  wants.health = false;
  auto feed = GW_TRY(open_feed(arguments, wants, repeats));
  if (arguments.has("--kill")) return run_kill(arguments, *feed, console);
  if (!repeats) {
    const Snapshot snapshot = GW_TRY(next_snapshot(*feed));
    if (!snapshot.gpus.empty() || console.json) print_one(snapshot, 0, arguments, false, console);
    return report_missing(snapshot, console);
  }
  if (const int code = GW_TRY(check_beforehand(*feed, console)); code != kDone) return code;
  const bool redraws = console.screen && arguments.has("--watch") && !console.json && !arguments.has("--csv");
  if (redraws)
    return show_on_screen(std::move(feed), pace, console,
                          [](const Snapshot& snapshot, const ScreenView& view, const Console& screen) {
                            print_text(snapshot, view.lines, screen);
                          });
  return show_each(*feed, pace, [&](const Snapshot& snapshot, std::int64_t number) {
    print_one(snapshot, number, arguments, true, console);
  });
}

std::vector<Option> ps_options() {
  std::vector<Option> options = {
      watch_option(),
      {.name = "--csv", .help = "a line a process"},
      {.name = "--stream",
       .value = "GROUPS",
       .help = "rolling columns of nvidia-smi pmon: u utilisation, m memory",
       .default_text = std::string(kProcessGroups),
       .optional_value = true,
       .accepts = are_process_groups},
      {.name = "--interval",
       .short_name = "-i",
       .value = "SECONDS",
       .help = "between the samples of --stream",
       .default_text = "1"},
      {.name = "--count", .short_name = "-n", .value = "N", .help = "end after N answers"},
      {.name = "--kill",
       .value = "PID",
       .help = "end this process, which must be on a GPU; asks first",
       .group = "End a process"},
      {.name = "--signal",
       .value = "NAME",
       .help = "the signal for it",
       .default_text = "TERM",
       .group = "End a process"},
      {.name = "--yes", .short_name = "-y", .help = "do not ask", .group = "End a process"},
  };
  for (Option& option : live_options(Replay::yes)) options.push_back(std::move(option));
  return options;
}

}  // namespace

Command ps_command() {
  return {"ps",
          "Show who uses the GPUs: process, user, container or job",
          "Every process on a GPU with its memory, utilisation, age and command, and where it runs: Kubernetes pod, "
          "Slurm job, container or service, told from its cgroup. Memory that is in use but held by no visible process "
          "has a row of its own.\n\n"
          "In a container the driver still tells the numbers that processes have on the host. Those that cannot be "
          "matched with a process here are marked with *.",
          {},
          ps_options(),
          {{"gpuwright ps", "all of them"},
           {"gpuwright ps --gpu 0 --json", "those on GPU 0, for a program"},
           {"gpuwright ps --kill 4711 --signal INT", "end one, after a question"},
           {"gpuwright ps --simulate", "what it looks like on a machine with GPUs"}},
          {"0  done, also when no process uses a GPU", "1  with --kill: the question was answered with no",
           "3  no GPU answers: none was found, none has a driver, or library and kernel module of a driver differ",
           "128+N  ended by signal N"},
          run_ps};
}

}  // namespace gpuwright::cli
