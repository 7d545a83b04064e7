// gpuwright stat: what the GPUs are doing now.
#include <fmt/format.h>

#include "base/screen.h"
#include "cli/commands.h"
#include "cli/live/live.h"
#include "cli/live/stat_json.h"
#include "cli/live/stat_text.h"
#include "cli/live/stream.h"
#include "cli/live/values.h"
#include "cli/live/watch.h"
#include "cli/table.h"

namespace gpuwright::cli {
namespace {

using device::Snapshot;
using FieldNames = std::optional<std::vector<std::string>>;

enum class Form { text, json, csv, stream };

struct StatRequest {
  Form form = Form::text;
  FieldNames fields;
  std::string groups;
  bool repeats = false;
  bool measures_rates = false;  // two samples before the first answer
  Pace pace;
};

bool are_gpu_groups(std::string_view word) {
  return check_gpu_groups(word).has_value();
}

Status check_forms(const Arguments& arguments, const Console& console) {
  if (arguments.has("--csv") && console.json)
    return fail(ErrorCode::bad_input, "--csv and --json exclude each other", "give one of them");
  if (arguments.has("--stream") && (console.json || arguments.has("--csv") || arguments.has("--fields")))
    return fail(ErrorCode::bad_input, "--stream has columns of its own",
                "for other forms: --watch with --json or --csv");
  if (arguments.has("--stream") && arguments.has("--watch"))
    return fail(ErrorCode::bad_input, "--stream repeats by itself", "--interval sets how often");
  return {};
}

Result<StatRequest> read_request(const Arguments& arguments, const Console& console) {
  GW_TRY(check_forms(arguments, console));
  StatRequest request;
  if (console.json) request.form = Form::json;
  if (arguments.has("--csv")) request.form = Form::csv;
  if (arguments.has("--stream")) {
    request.form = Form::stream;
    request.groups = arguments.value("--stream").value_or(std::string(kGpuGroups));
    GW_TRY(check_gpu_groups(request.groups));
  }
  if (const auto fields = arguments.value("--fields")) request.fields = GW_TRY(parse_fields(*fields));
  request.pace.count = GW_TRY(arguments.integer("--count", 1, 1'000'000'000));
  const bool streams = request.form == Form::stream;
  request.repeats = streams || arguments.has("--watch") || request.pace.count.value_or(1) > 1;
  request.measures_rates = arguments.has("--interval") && !request.repeats;
  request.pace.seconds = GW_TRY(seconds_of(arguments, "--interval", 1));
  if (!streams) request.pace.seconds = GW_TRY(seconds_of(arguments, "--watch", request.pace.seconds));
  return request;
}

device::Wants wants_of(const StatRequest& request) {
  device::Wants wants;
  const bool all = request.form == Form::json && !request.fields;
  wants.processes = all || request.form == Form::text || request.fields;  // unattributed memory needs them
  wants.process_utilization = all || (request.form == Form::text && !request.fields);
  const bool rates = request.repeats || request.measures_rates;
  wants.traffic = rates && (request.form == Form::stream ? request.groups.find('t') != std::string::npos
                                                         : need_traffic(request.fields));
  wants.activity = rates && request.form != Form::stream;
  wants.health = request.form != Form::stream || request.groups.find('e') != std::string::npos;
  return wants;
}

void print_fields(const Snapshot& snapshot, const std::vector<std::string>& names, const Console& console) {
  print_banner(snapshot, console);
  std::vector<Column> columns;
  for (const std::string& name : names) columns.push_back({name, Align::left, true});
  Table table(std::move(columns));
  for (const device::Gpu& gpu : snapshot.gpus) {
    const std::vector<Field> all = fields_of(snapshot, gpu);
    std::vector<Cell> cells;
    for (const std::string& name : names)
      for (const Field& field : all) {
        if (field.name != name) continue;
        const auto text = field.value.as_string();
        const std::string value = text ? std::string(*text) : csv_cell(field.value);
        cells.push_back(field.why.empty() ? Cell(value.empty() ? "-" : value)
                                          : Cell("n/a (" + field.why + ")", Tone::dim));
      }
    table.add(std::move(cells));
  }
  table.print(console);
}

// Titles come back as often as a screen is full, on a terminal; once in a file.
bool needs_titles(std::int64_t number, const Snapshot& snapshot, const Console& console) {
  constexpr std::int64_t kRows = 20;
  const auto rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(snapshot.gpus.size()));
  const std::int64_t blocks = std::max<std::int64_t>(1, kRows / rows);
  return number == 0 || (!console.wide && number % blocks == 0);
}

void print_one(const StatRequest& request, const Snapshot& snapshot, std::int64_t number, const Feed& feed,
               const Console& console) {
  switch (request.form) {
    case Form::json:
      console.out << stat_json(snapshot, request.fields).dump(request.repeats ? 0 : 2) << '\n';
      break;
    case Form::csv: {
      const auto fields = request.fields.value_or(gpu_field_names());
      if (number == 0) console.out << stat_csv_header(snapshot, fields);
      console.out << stat_csv_lines(snapshot, fields);
      break;
    }
    case Form::stream:
      if (number == 0 && !snapshot.simulated.empty()) console.out << "# " << simulated_banner(snapshot) << '\n';
      if (needs_titles(number, snapshot, console)) console.out << gpu_stream_header(request.groups);
      console.out << gpu_stream_lines(snapshot, request.groups);
      break;
    case Form::text:
      if (number > 0) console.out << '\n';
      if (request.fields)
        print_fields(snapshot, *request.fields, console);
      else
        print_stat(snapshot, {std::nullopt, true, feed.note(), feed.tells_time()}, console);
      break;
  }
  console.out.flush();
}

// One answer; with --interval the second of two samples, so that rates are known.
Result<int> answer_once(const StatRequest& request, Feed& feed, const Console& console) {
  Snapshot snapshot = GW_TRY(next_snapshot(feed));
  if (request.measures_rates && !is_missing(snapshot)) {
    const int code = GW_TRY(
        show_each(feed, {request.pace.seconds, 2}, [&](const Snapshot& next, std::int64_t) { snapshot = next; }));
    if (code != kDone) return code;
  }
  if (!snapshot.gpus.empty() || console.json) print_one(request, snapshot, 0, feed, console);
  // The text has said already what is wrong with a driver.
  const bool told = request.form == Form::text && !request.fields && !snapshot.gpus.empty();
  if (told) return is_missing(snapshot) ? kMissing : kDone;
  return report_missing(snapshot, console);
}

Result<int> answer_often(const StatRequest& request, std::unique_ptr<Feed> feed, const Arguments& arguments,
                         const Console& console) {
  if (const int code = GW_TRY(check_beforehand(*feed, console)); code != kDone) return code;
  const bool redraws = request.form == Form::text && !request.fields && arguments.has("--watch") && console.screen;
  if (redraws)
    return show_on_screen(std::move(feed), request.pace, console,
                          [](const Snapshot& snapshot, const ScreenView& view, const Console& screen) {
                            print_stat(snapshot, {view.lines, view.processes, view.note}, screen);
                          });
  return show_each(*feed, request.pace, [&](const Snapshot& snapshot, std::int64_t number) {
    print_one(request, snapshot, number, *feed, console);
  });
}

Result<int> run_stat(const Arguments& arguments, const Console& console) {
  if (arguments.value("--fields") == "help") {
    console.out << field_list();
    return kDone;
  }
  const StatRequest request = GW_TRY(read_request(arguments, console));
  auto feed = GW_TRY(open_feed(arguments, wants_of(request), request.repeats));
  if (!request.repeats) return answer_once(request, *feed, console);
  return answer_often(request, std::move(feed), arguments, console);
}

std::vector<Option> stat_options() {
  std::vector<Option> options = {
      watch_option(),
      {.name = "--csv", .help = "a line a GPU, with all fields or those of --fields"},
      {.name = "--fields",
       .short_name = "-F",
       .value = "LIST",
       .help = "only these, joined by commas; 'help' lists them"},
      {.name = "--stream",
       .value = "GROUPS",
       .help = "rolling columns of nvidia-smi dmon: p power and temperature, u utilisation, c clocks, m memory, e ECC "
               "and PCIe replays, t PCIe traffic",
       .default_text = std::string(kGpuGroups),
       .optional_value = true,
       .accepts = are_gpu_groups},
      {.name = "--interval",
       .short_name = "-i",
       .value = "SECONDS",
       .help = "between the samples of --stream; without it: take two samples, so that rates are known"},
      {.name = "--count", .short_name = "-n", .value = "N", .help = "end after N answers"},
  };
  for (Option& option : live_options(Replay::yes)) options.push_back(std::move(option));
  return options;
}

}  // namespace

std::vector<std::string> exit_notes_of_live() {
  return {"0  done",
          "3  no GPU answers: none was found, none has a driver, or library and kernel module of a driver differ",
          "128+N  ended by signal N"};
}

Command stat_command() {
  return {"stat",
          "Show what the GPUs of this machine are doing",
          "Memory, utilisation, power, temperature, errors and processes of every GPU that is here: NVIDIA, AMD, Intel "
          "and Ascend, with memory of their own or shared with the CPU. A GPU that hangs or is lost keeps its row and "
          "does not disturb the others. What a GPU does not tell is n/a, and JSON says why.\n\n"
          "Columns: bus, the share of time in which memory was read or written; util, in which anything ran. A wider "
          "terminal shows more of them. Memory that is in use but held by no visible process has a row of its own. A "
          "sleeping GPU is not woken.",
          {},
          stat_options(),
          {{"gpuwright stat", "once"},
           {"gpuwright stat --watch 2", "redrawn every two seconds"},
           {"gpuwright stat --json --fields index,memory_free_bytes,utilization_ratio", "for a program"},
           {"gpuwright stat --stream put --interval 5", "rolling columns, with PCIe traffic"},
           {"gpuwright stat --simulate", "what it looks like on a machine with GPUs"}},
          exit_notes_of_live(),
          run_stat};
}

}  // namespace gpuwright::cli
