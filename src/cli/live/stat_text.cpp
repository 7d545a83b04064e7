#include "cli/live/stat_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/text.h"
#include "cli/live/processes.h"
#include "cli/live/values.h"
#include "cli/style.h"
#include "cli/table.h"

namespace gpuwright::cli {
namespace {

using device::Gpu;
using device::Reading;
using device::Snapshot;
using device::State;

constexpr int kPipeWidth = 120;  // of tables that go to a file or pipe
constexpr int kBar = 12;

// Where the terminal's width is not known, columns are chosen for one of 120.
Console for_columns(Console console) {
  if (console.wide) console.width = kPipeWidth;
  console.wide = false;
  return console;
}

bool tells(const Gpu& gpu) {
  return gpu.state == State::ok;
}

Cell memory_cell(const Gpu& gpu) {
  if (!gpu.memory_used || !gpu.memory_total) return unknown_cell();
  return fmt::format("{}/{}", gib_text(*gpu.memory_used), gib_text(*gpu.memory_total));
}

std::string repeated(std::string_view piece, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += piece;
  return text;
}

// What the GPU holds, then (unified memory) what the rest of the machine holds, then what is free.
Cell bar_cell(const Gpu& gpu, const Console& console) {
  if (!gpu.memory_used || !gpu.memory_total || gpu.memory_total->count <= 0) return Cell("");
  const double total = static_cast<double>(gpu.memory_total->count);
  const auto share = [&](Bytes bytes) { return static_cast<double>(bytes.count) / total; };
  const double used = std::clamp(share(*gpu.memory_used), 0.0, 1.0);
  const double host = std::clamp(share(gpu.host_used.value_or(Bytes{})), 0.0, 1.0 - used);
  const int halves = static_cast<int>(std::lround(used * kBar * 2));
  const bool half = console.unicode && halves % 2 == 1;
  const int full = halves / 2 + (halves % 2 == 1 && !half ? 1 : 0);
  const int taken = full + (half ? 1 : 0);
  const int others = std::min(static_cast<int>(std::lround(host * kBar)), kBar - taken);
  std::string bar = repeated(console.unicode ? "█" : "#", full) + (half ? "▌" : "");
  bar += repeated(console.unicode ? "▒" : "+", others);
  bar += repeated(console.unicode ? "·" : ".", kBar - taken - others);
  const double held = used + host;
  return {bar, held >= 0.95 ? Tone::bad : held >= 0.8 ? Tone::warning : Tone::good};
}

Cell utilization_cell(const Gpu& gpu) {
  Cell cell = percent_cell(gpu.utilization);
  if (!gpu.utilization) return cell;
  const bool holds = gpu.memory_used && gpu.memory_total && gpu.memory_used->count * 20 > gpu.memory_total->count;
  if (gpu.utilization->value >= 0.5)
    cell.tone = Tone::good;
  else if (gpu.utilization->value < 0.01 && holds && !gpu.unified_memory)
    cell.tone = Tone::warning;  // memory is held, and nothing computes
  return cell;
}

Cell temperature_cell(const Reading<Celsius>& temperature, const Gpu& gpu) {
  Cell cell = celsius_cell(temperature);
  if (!temperature) return cell;
  const double slowdown = gpu.temperature_slowdown.value_or(Celsius{90}).value;
  if (temperature->value >= slowdown - 3)
    cell.tone = Tone::bad;
  else if (temperature->value >= slowdown - 12)
    cell.tone = Tone::warning;
  return cell;
}

// The vendor goes without saying in a table; names of workstation cards are long.
Cell name_cell(const Gpu& gpu, const Console& console) {
  const std::string vendor(to_string(gpu.vendor));
  if (!gpu.name) return {vendor, Tone::dim};
  std::string name = *gpu.name;
  if (name.size() > vendor.size() + 1 && starts_with_ignoring_case(name, vendor + " "))
    name.erase(0, vendor.size() + 1);
  const int room = console.width >= 100 ? 24 : console.width >= 70 ? 17 : 12;
  return {shorten(printable(name), room, console.unicode), Tone::name};
}

Cell power_cell(const Gpu& gpu) {
  if (!gpu.power) return unknown_cell();
  if (!gpu.power_limit) return fmt::format("{:.0f}W", gpu.power->value);
  return fmt::format("{:.0f}/{:.0f}W", gpu.power->value, gpu.power_limit->value);
}

Cell megahertz_cell(const Reading<Hertz>& clock) {
  if (!clock) return unknown_cell();
  return fmt::format("{:.0f}", clock->value / 1e6);
}

Cell traffic_cell(const Reading<device::BytesPerSecond>& rate) {
  if (!rate) return unknown_cell();
  return fmt::format("{:.0f}", rate->value / 1e6);
}

Cell link_cell(const Gpu& gpu) {
  if (!gpu.pcie_generation || !gpu.pcie_width) return unknown_cell();
  return fmt::format("{}x{}", *gpu.pcie_generation, *gpu.pcie_width);
}

Cell performance_cell(const Gpu& gpu) {
  if (!gpu.performance_state) return unknown_cell();
  return fmt::format("P{}", *gpu.performance_state);
}

Cell ecc_cell(const Gpu& gpu) {
  if (!gpu.ecc_uncorrected_volatile) return unknown_cell();
  return {fmt::format("{}", *gpu.ecc_uncorrected_volatile),
          *gpu.ecc_uncorrected_volatile > 0 ? Tone::bad : Tone::plain};
}

Cell reserved_cell(const Gpu& gpu) {
  if (!gpu.memory_reserved) return unknown_cell();
  return gib_text(*gpu.memory_reserved);
}

Cell encoder_cell(const Gpu& gpu) {
  if (!gpu.encoder_utilization && !gpu.decoder_utilization) return unknown_cell();
  return percent_cell(gpu.encoder_utilization).text + "/" + percent_cell(gpu.decoder_utilization).text;
}

struct GpuColumn {
  Column column;
  Cell (*cell)(const Gpu&, const Console&);
  bool optional = false;  // left out when no GPU tells it
};

std::vector<GpuColumn> gpu_columns() {
  const auto right = Align::right;
  return {
      {{"GPU", right}, [](const Gpu& g, const Console&) { return Cell(fmt::format("{}", g.index), Tone::heading); }},
      {{"name"}, [](const Gpu& g, const Console& c) { return name_cell(g, c); }},
      {{"temp", right, false, 3}, [](const Gpu& g, const Console&) { return temperature_cell(g.temperature, g); }},
      {{"mtemp", right, false, 12},
       [](const Gpu& g, const Console&) { return temperature_cell(g.memory_temperature, g); },
       true},
      {{"fan", right, false, 11}, [](const Gpu& g, const Console&) { return percent_cell(g.fan); }, true},
      {{"perf", right, false, 10}, [](const Gpu& g, const Console&) { return performance_cell(g); }, true},
      {{"power", right, false, 2}, [](const Gpu& g, const Console&) { return power_cell(g); }},
      {{"memory", Align::left, false, 4}, [](const Gpu& g, const Console& c) { return bar_cell(g, c); }},
      {{"GiB", right}, [](const Gpu& g, const Console&) { return memory_cell(g); }},
      {{"reserved", right, false, 16}, [](const Gpu& g, const Console&) { return reserved_cell(g); }, true},
      {{"util", right}, [](const Gpu& g, const Console&) { return utilization_cell(g); }},
      {{"bus", right, false, 8}, [](const Gpu& g, const Console&) { return percent_cell(g.memory_utilization); }, true},
      {{"active", right, false, 7}, [](const Gpu& g, const Console&) { return percent_cell(g.sm_activity); }, true},
      {{"occup", right, false, 13}, [](const Gpu& g, const Console&) { return percent_cell(g.sm_occupancy); }, true},
      {{"tensor", right, false, 9}, [](const Gpu& g, const Console&) { return percent_cell(g.tensor_activity); }, true},
      {{"enc/dec", right, false, 14}, [](const Gpu& g, const Console&) { return encoder_cell(g); }, true},
      {{"MHz", right, false, 6}, [](const Gpu& g, const Console&) { return megahertz_cell(g.sm_clock); }, true},
      {{"mem MHz", right, false, 17},
       [](const Gpu& g, const Console&) { return megahertz_cell(g.memory_clock); },
       true},
      {{"ECC", right, false, 15}, [](const Gpu& g, const Console&) { return ecc_cell(g); }, true},
      {{"PCIe", right, false, 18}, [](const Gpu& g, const Console&) { return link_cell(g); }, true},
      {{"rx MB/s", right, false, 19}, [](const Gpu& g, const Console&) { return traffic_cell(g.pcie_received); }, true},
      {{"tx MB/s", right, false, 19}, [](const Gpu& g, const Console&) { return traffic_cell(g.pcie_sent); }, true},
  };
}

// "lost: the GPU fell off the bus", in the place of the values.
Cell state_cell(const Gpu& gpu) {
  const std::string word(to_string(gpu.state));
  return {gpu.state_detail.empty() ? word : word + ": " + gpu.state_detail,
          gpu.state == State::asleep ? Tone::dim : Tone::bad};
}

void add_instances(Table& table, const Gpu& gpu) {
  for (const device::MigInstance& instance : gpu.mig_instances) {
    std::string text = fmt::format("MIG {}:{}  {:<10}", instance.gpu_instance, instance.compute_instance,
                                   instance.profile.value_or("n/a"));
    if (instance.memory_used && instance.memory_total)
      text += fmt::format("  {}/{} GiB", gib_text(*instance.memory_used), gib_text(*instance.memory_total));
    if (instance.graphics_activity) text += fmt::format("  active {}", percent_cell(instance.graphics_activity).text);
    if (instance.multiprocessors) text += fmt::format("  {} SMs", *instance.multiprocessors);
    table.add_spanning({"", Cell(text)});
  }
}

void print_gpus(const Snapshot& snapshot, const Console& console) {
  std::vector<GpuColumn> columns;
  for (const GpuColumn& one : gpu_columns()) {
    const bool told = std::any_of(snapshot.gpus.begin(), snapshot.gpus.end(), [&](const Gpu& gpu) {
      return tells(gpu) && one.cell(gpu, console).text != unknown_cell().text;
    });
    if (told || !one.optional) columns.push_back(one);
  }
  std::vector<Column> titles;
  for (const GpuColumn& one : columns) titles.push_back(one.column);
  Table table(std::move(titles));
  for (const Gpu& gpu : snapshot.gpus) {
    std::vector<Cell> cells;
    for (const GpuColumn& one : columns) cells.push_back(one.cell(gpu, console));
    if (!tells(gpu)) {
      cells.resize(2, Cell(""));
      cells.push_back(state_cell(gpu));
      table.add_spanning(std::move(cells));
    } else {
      table.add(std::move(cells));
    }
    add_instances(table, gpu);
  }
  table.print(for_columns(console));
}

void print_header(const Snapshot& snapshot, const StatView& view, const Console& console) {
  std::string rest = view.tells_time ? "  " + local_time(snapshot.time) : "";
  for (const device::Driver& driver : snapshot.drivers) {
    if (!driver.version) continue;
    rest += fmt::format("  {} {}", driver.source == "nvml" ? "NVIDIA" : driver.source, *driver.version);
    if (driver.cuda_version) rest += fmt::format(", CUDA {}", *driver.cuda_version);
  }
  if (!view.note.empty()) rest += "  " + view.note;
  const std::string host = shorten(printable(snapshot.hostname), console.width / 2, console.unicode);
  rest = printable(rest);
  if (!console.wide) rest = shorten(rest, console.width - display_width(host), console.unicode);
  console.out << paint(console, Tone::heading, host) << rest << '\n';
}

void print_remarks(const std::vector<Remark>& remarks, std::optional<int> limit, const Console& console) {
  int shown = 0;
  for (const Remark& remark : remarks) {
    const bool last = limit && shown + 1 == *limit && remarks.size() > static_cast<std::size_t>(*limit);
    const std::string text = last ? fmt::format("and {} more remarks", remarks.size() - static_cast<std::size_t>(shown))
                                  : printable(remark.text);
    const std::string mark = console.unicode ? (remark.bad ? "✗ " : "! ") : (remark.bad ? "x " : "! ");
    const std::string line = limit          ? shorten(mark + text, console.width, console.unicode)
                             : console.wide ? mark + text
                                            : wrap(mark + text, console.width, 2);
    console.out << paint(console, remark.bad ? Tone::bad : Tone::warning, line) << '\n';
    if (++shown == limit.value_or(-1)) return;
  }
}

int lines_in(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

std::string simulated_banner(const Snapshot& snapshot) {
  if (snapshot.simulated.empty()) return {};
  return fmt::format("SIMULATED ({}): nothing here is of this machine", printable(snapshot.simulated));
}

void print_banner(const Snapshot& snapshot, const Console& console) {
  const std::string banner = simulated_banner(snapshot);
  if (!banner.empty()) console.out << paint(console, Tone::warning, banner) << '\n';
}

void print_stat(const Snapshot& snapshot, const StatView& view, const Console& console) {
  std::ostringstream text;
  Console buffered{text,         console.err,  console.color,   console.terminal, console.width,
                   console.json, console.wide, console.unicode, console.language};
  print_banner(snapshot, buffered);
  print_header(snapshot, view, buffered);
  print_gpus(snapshot, buffered);
  std::vector<Remark> remarks = remarks_on(snapshot);
  const std::string shown = text.str();
  remarks.erase(std::remove_if(remarks.begin(), remarks.end(),
                               [&](const Remark& remark) {
                                 return !remark.row.empty() && shown.find(printable(remark.row)) != std::string::npos;
                               }),
                remarks.end());
  const bool cut = view.height.has_value();
  if (!remarks.empty()) {
    if (!cut) text << '\n';
    const int room = cut ? std::clamp(*view.height - lines_in(text.str()) - 4, 1, 6) : 0;
    print_remarks(remarks, cut ? std::optional(room) : std::nullopt, buffered);
  }
  if (view.processes && !snapshot.gpus.empty()) {
    const int left = cut ? *view.height - lines_in(text.str()) - 1 : 0;
    if (!cut || left >= 1) {
      text << '\n';
      print_processes(snapshot, cut ? std::optional(left) : std::nullopt, buffered);
    }
  }
  console.out << text.str();
}

}  // namespace gpuwright::cli
