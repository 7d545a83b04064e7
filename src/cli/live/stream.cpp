#include "cli/live/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "cli/live/processes.h"

namespace gpuwright::cli {
namespace {

using device::Gpu;
using device::Process;
using device::Reading;

std::string count(const Reading<std::int64_t>& reading) {
  return reading ? fmt::format("{}", *reading) : "-";
}
std::string percent(const Reading<Ratio>& reading) {
  return reading ? fmt::format("{:.0f}", reading->value * 100) : "-";
}
std::string mib(const Reading<Bytes>& reading) {
  return reading ? fmt::format("{}", reading->count >> 20) : "-";
}
template <class Unit>
std::string scaled(const Reading<Unit>& reading, double divisor) {
  return reading ? fmt::format("{:.0f}", reading->value / divisor) : "-";
}

template <class Subject>
struct StreamColumn {
  char group;
  const char* title;
  const char* unit;
  std::string (*text)(const Subject&);
};

const std::vector<StreamColumn<Gpu>>& gpu_columns() {
  static const std::vector<StreamColumn<Gpu>> kColumns = {
      {'p', "pwr", "W", [](const Gpu& g) { return scaled(g.power, 1); }},
      {'p', "gtemp", "C", [](const Gpu& g) { return scaled(g.temperature, 1); }},
      {'p', "mtemp", "C", [](const Gpu& g) { return scaled(g.memory_temperature, 1); }},
      {'u', "sm", "%", [](const Gpu& g) { return percent(g.utilization); }},
      {'u', "mem", "%", [](const Gpu& g) { return percent(g.memory_utilization); }},
      {'u', "enc", "%", [](const Gpu& g) { return percent(g.encoder_utilization); }},
      {'u', "dec", "%", [](const Gpu& g) { return percent(g.decoder_utilization); }},
      {'u', "jpg", "%", [](const Gpu& g) { return percent(g.jpeg_utilization); }},
      {'u', "ofa", "%", [](const Gpu& g) { return percent(g.ofa_utilization); }},
      {'c', "mclk", "MHz", [](const Gpu& g) { return scaled(g.memory_clock, 1e6); }},
      {'c', "pclk", "MHz", [](const Gpu& g) { return scaled(g.graphics_clock ? g.graphics_clock : g.sm_clock, 1e6); }},
      {'m', "fb", "MB", [](const Gpu& g) { return mib(g.memory_used); }},
      {'m', "bar1", "MB", [](const Gpu& g) { return mib(g.bar1_used); }},
      {'m', "ccpm", "MB", [](const Gpu&) { return std::string("-"); }},
      {'e', "sbecc", "errs", [](const Gpu& g) { return count(g.ecc_corrected_volatile); }},
      {'e', "dbecc", "errs", [](const Gpu& g) { return count(g.ecc_uncorrected_volatile); }},
      {'e', "pci", "errs", [](const Gpu& g) { return count(g.pcie_replays); }},
      {'t', "rxpci", "MB/s", [](const Gpu& g) { return scaled(g.pcie_received, 1e6); }},
      {'t', "txpci", "MB/s", [](const Gpu& g) { return scaled(g.pcie_sent, 1e6); }},
  };
  return kColumns;
}

const std::vector<StreamColumn<Process>>& process_columns() {
  static const std::vector<StreamColumn<Process>> kColumns = {
      {'u', "sm", "%", [](const Process& p) { return percent(p.sm_utilization); }},
      {'u', "mem", "%", [](const Process& p) { return percent(p.memory_utilization); }},
      {'u', "enc", "%", [](const Process& p) { return percent(p.encoder_utilization); }},
      {'u', "dec", "%", [](const Process& p) { return percent(p.decoder_utilization); }},
      {'u', "jpg", "%", [](const Process&) { return std::string("-"); }},
      {'u', "ofa", "%", [](const Process&) { return std::string("-"); }},
      {'m', "fb", "MB", [](const Process& p) { return mib(p.memory); }},
      {'m', "ccpm", "MB", [](const Process&) { return std::string("-"); }},
  };
  return kColumns;
}

Status check(std::string_view groups, std::string_view allowed, std::string_view meaning) {
  for (const char group : groups)
    if (allowed.find(group) == std::string_view::npos)
      return fail(ErrorCode::bad_input, fmt::format("--stream: there is no group '{}'", std::string(1, group)),
                  std::string(meaning));
  return {};
}

// The columns in the order in which the groups are named, as nvidia-smi has them.
template <class Columns, class TextOf>
std::string line_of(const Columns& columns, std::string_view groups, TextOf text_of) {
  std::string line;
  for (const char group : groups)
    for (const auto& column : columns)
      if (column.group == group) line += fmt::format(" {:>6}", text_of(column));
  return line;
}

template <class Columns>
std::string titles_of(const Columns& columns, std::string_view groups) {
  return line_of(columns, groups, [](const auto& column) { return column.title; });
}
template <class Columns>
std::string units_of(const Columns& columns, std::string_view groups) {
  return line_of(columns, groups, [](const auto& column) { return column.unit; });
}

// The name of the program, as pmon has it: the file of the executable, else the first word of the command.
std::string program_of(const Process& process) {
  std::string path = process.executable.value_or(process.command.value_or("-"));
  if (!process.executable) path = path.substr(0, path.find(' '));
  return printable(path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1));
}

}  // namespace

Status check_gpu_groups(std::string_view groups) {
  return check(groups, "pucmet",
               "p power and temperature, u utilisation, c clocks, m memory, e ECC and replays, t PCIe traffic");
}

Status check_process_groups(std::string_view groups) {
  return check(groups, "um", "u utilisation, m memory");
}

std::string gpu_stream_header(std::string_view groups) {
  return "# gpu" + titles_of(gpu_columns(), groups) + "\n# Idx" + units_of(gpu_columns(), groups) + "\n";
}

std::string gpu_stream_lines(const device::Snapshot& snapshot, std::string_view groups) {
  std::string text;
  for (const Gpu& gpu : snapshot.gpus)
    text += fmt::format("{:>5}", gpu.index) +
            line_of(gpu_columns(), groups, [&](const auto& column) { return column.text(gpu); }) + "\n";
  return text;
}

std::string process_stream_header(std::string_view groups) {
  return "# gpu         pid   type" + titles_of(process_columns(), groups) + "    command\n" +
         "# Idx           #    C/G" + units_of(process_columns(), groups) + "    name\n";
}

std::string process_stream_lines(const device::Snapshot& snapshot, std::string_view groups) {
  const auto processes = in_order(snapshot);
  const auto line = [&](int gpu, const auto& pid, const std::string& type, const std::string& values,
                        const std::string& name) {
    return fmt::format("{:>5} {:>11} {:>6}{}    {}\n", gpu, pid, type, values, name);
  };
  std::string text;
  for (const Gpu& gpu : snapshot.gpus) {
    const std::size_t before = text.size();
    for (const Process* process : processes)
      if (process->gpu == gpu.index)
        text += line(gpu.index, process->pid_here.value_or(process->pid), kind_text(*process),
                     line_of(process_columns(), groups, [&](const auto& column) { return column.text(*process); }),
                     program_of(*process));
    if (text.size() == before)
      text += line(gpu.index, "-", "-", line_of(process_columns(), groups, [](const auto&) { return "-"; }), "-");
  }
  return text;
}

}  // namespace gpuwright::cli
