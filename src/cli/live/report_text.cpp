#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/live/report.h"
#include "cli/live/values.h"
#include "cli/style.h"
#include "cli/table.h"

namespace gpuwright::cli {
namespace {

using device::GpuReport;
using device::HeldMemory;
using device::OverTime;
using device::Report;
using device::UserReport;

constexpr std::size_t kRows = 15;  // of a table; programs get all

std::string percent(Ratio ratio) {
  return fmt::format("{:.0f}%", ratio.value * 100);
}
std::string energy_text(device::Joules energy) {
  const double watt_hours = energy.value / 3600;
  return watt_hours >= 1000 ? fmt::format("{:.2f} kWh", watt_hours / 1000) : fmt::format("{:.1f} Wh", watt_hours);
}
std::string time_text(device::Seconds time) {
  return duration_text(time.count());
}
std::string watts(Watts power) {
  return fmt::format("{:.0f}W", power.value);
}
std::string degrees(Celsius temperature) {
  return fmt::format("{:.0f}C", temperature.value);
}

template <class Unit, class Text>
Cell figure(const std::optional<OverTime<Unit>>& over_time, Unit OverTime<Unit>::*which, Text text) {
  return over_time ? Cell(text((*over_time).*which)) : unknown_cell();
}

void print_gpus(const Report& report, const Console& console) {
  const auto right = Align::right;
  Table table({{"GPU", right},
               {"name", Align::left, true},
               {"util", right},
               {"p95", right},
               {"memory", right},
               {"most", right},
               {"power", right, false, 1},
               {"peak", right, false, 3},
               {"temp", right, false, 2},
               {"energy", right}});
  for (const GpuReport& one : report.gpus) {
    Cell use = figure(one.utilization, &OverTime<Ratio>::mean, percent);
    if (one.utilization) use.tone = one.utilization->mean.value >= 0.5 ? Tone::good : Tone::plain;
    table.add({{fmt::format("{}", one.gpu.index), Tone::heading},
               {one.gpu.name.value_or(std::string(to_string(one.gpu.vendor))), Tone::name},
               use,
               figure(one.utilization, &OverTime<Ratio>::p95, percent),
               figure(one.memory_used, &OverTime<Bytes>::mean, memory_text),
               figure(one.memory_used, &OverTime<Bytes>::max, memory_text),
               figure(one.power, &OverTime<Watts>::mean, watts),
               figure(one.power, &OverTime<Watts>::max, watts),
               figure(one.temperature, &OverTime<Celsius>::max, degrees),
               one.energy ? Cell(energy_text(one.energy->total)) : unknown_cell()});
  }
  table.print(console);
}

// "alice, pod ml/train-0: python train.py"
std::string owner_text(const HeldMemory& held) {
  if (held.pid == 0) return "no visible process";
  std::string text = held.user.empty() ? "an unknown user" : held.user;
  for (const std::string& place : {held.pod, held.slurm_job.empty() ? "" : "slurm " + held.slurm_job, held.container})
    if (!place.empty()) {
      text += ", " + place.substr(0, 40);
      break;
    }
  return text + fmt::format(", process {}", held.pid) + (held.command.empty() ? "" : ": " + held.command);
}

void print_held(const Report& report, const Console& console) {
  if (report.held.empty()) return;
  print_heading(console, "Memory that was held while nothing computed");
  Table table({{"GPU", Align::right}, {"memory", Align::right}, {"for", Align::right}, {"by", Align::left, true}}, 2);
  for (std::size_t i = 0; i < std::min(report.held.size(), kRows); ++i) {
    const HeldMemory& held = report.held[i];
    table.add({{fmt::format("{}", held.gpu), Tone::heading},
               {memory_text(held.memory), Tone::warning},
               time_text(held.duration()) + (held.still ? "+" : ""),
               owner_text(held)});
  }
  table.print(console);
  if (report.held.size() > kRows) console.out << fmt::format("  and {} more\n", report.held.size() - kRows);
  const bool still = std::any_of(report.held.begin(), report.held.end(), [](const HeldMemory& h) { return h.still; });
  if (still) console.out << "  +: it was still so when the recording ended\n";
}

void print_throttling(const Report& report, const Console& console) {
  Table table({{"GPU", Align::right}, {"for", Align::right}, {"share", Align::right}, {"reason"}}, 2);
  for (const GpuReport& one : report.gpus)
    for (const auto& [reason, time] : one.throttled) {
      const double share = one.throttle_known.count() > 0 ? time.count() / one.throttle_known.count() : 0;
      if (share < 0.005) continue;
      table.add({{fmt::format("{}", one.gpu.index), Tone::heading}, time_text(time), percent(Ratio{share}), reason});
    }
  if (table.empty()) return;
  print_heading(console, "What held the clocks down");
  table.print(console);
}

void print_faults(const Report& report, const Console& console) {
  if (report.faults.empty()) return;
  print_heading(console, "What went wrong");
  Table table({{"time"}, {"GPU", Align::right}, {"what", Align::left, true}}, 2);
  const std::size_t first = report.faults.size() > kRows ? report.faults.size() - kRows : 0;
  for (std::size_t i = first; i < report.faults.size(); ++i) {
    const device::Fault& fault = report.faults[i];
    table.add({local_time(fault.time), {fmt::format("{}", fault.gpu), Tone::heading}, {fault.text, Tone::bad}});
  }
  table.print(console);
  const std::int64_t before = report.faults_left_out + static_cast<std::int64_t>(first);
  if (before > 0) console.out << fmt::format("  and {} before these\n", before);
}

void print_users(const Report& report, const Console& console) {
  if (report.users.empty()) return;
  print_heading(console, "Who had the GPUs");
  Table table({{"user"},
               {"GPU time", Align::right},
               {"computing", Align::right},
               {"most memory", Align::right},
               {"energy", Align::right}},
              2);
  bool by_memory = false;
  for (std::size_t i = 0; i < std::min(report.users.size(), kRows); ++i) {
    const UserReport& user = report.users[i];
    by_memory = by_memory || !user.energy_by_use;
    table.add({{user.user.empty() ? "unknown" : user.user, Tone::name},
               time_text(user.held),
               user.busy_known ? Cell(time_text(user.busy)) : unknown_cell(),
               memory_text(user.memory_max),
               energy_text(user.energy) + (user.energy_by_use ? "" : "*")});
  }
  table.print(console);
  if (by_memory) console.out << "  *: shared by memory, where the use of a process was not told\n";
}

}  // namespace

void print_report(const Report& report, const Console& console) {
  if (!report.simulated.empty())
    console.out << paint(console, Tone::warning,
                         fmt::format("SIMULATED ({}): nothing here is of a real machine", printable(report.simulated)))
                << '\n';
  console.out << paint(console, Tone::heading, printable(report.hostname))
              << fmt::format("  {} to {}: {} snapshots over {}\n", local_time(report.from), local_time(report.to),
                             report.snapshots, time_text(report.observed));
  print_gpus(report, console);
  print_users(report, console);
  print_held(report, console);
  print_throttling(report, console);
  print_faults(report, console);
}

}  // namespace gpuwright::cli
