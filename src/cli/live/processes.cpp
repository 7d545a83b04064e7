#include "cli/live/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/live/stat_text.h"
#include "cli/live/values.h"
#include "cli/style.h"
#include "cli/table.h"

namespace gpuwright::cli {
namespace {

using device::Process;
using device::Snapshot;

// User slices and sessions are the ordinary case and say nothing of a job.
bool is_plain_login(const std::string& unit) {
  return unit.rfind("user@", 0) == 0 || unit.rfind("session-", 0) == 0 || unit.rfind("user-", 0) == 0;
}

std::string gpu_text(const Process& process) {
  if (!process.gpu_instance) return fmt::format("{}", process.gpu);
  const std::string compute = process.compute_instance ? fmt::format(":{}", *process.compute_instance) : "";
  return fmt::format("{}/{}{}", process.gpu, *process.gpu_instance, compute);
}

Cell pid_cell(const Process& process) {
  if (process.pid_here) return fmt::format("{}", *process.pid_here);
  return {fmt::format("{}*", process.pid), Tone::warning};
}

Cell text_cell(const device::Reading<std::string>& text) {
  return text ? Cell(*text) : unknown_cell();
}

Cell memory_cell(const Process& process) {
  return process.memory ? Cell(memory_text(*process.memory)) : unknown_cell();
}

Cell running_cell(const Process& process, const Snapshot& snapshot) {
  if (!process.started) return unknown_cell();
  return duration_text(static_cast<double>(snapshot.time.nanoseconds - process.started->nanoseconds) / 1e9);
}

std::vector<Column> process_columns(bool placed) {
  const auto right = Align::right;
  std::vector<Column> columns = {{"GPU", right},
                                 {"PID", right},
                                 {"user", Align::left},
                                 {"type", Align::left, false, 8},
                                 {"memory", right},
                                 {"SM", right, false, 1},
                                 {"bus", right, false, 9},
                                 {"enc", right, false, 10},
                                 {"dec", right, false, 10},
                                 {"CPU", right, false, 6},
                                 {"host mem", right, false, 7},
                                 {"time", right, false, 2}};
  if (placed) columns.push_back({"where", Align::left, true, 3, 13});
  columns.push_back({"command", Align::left, true, 0, 20});
  return columns;
}

void add_process(Table& table, const Process& process, const Snapshot& snapshot, bool placed) {
  std::vector<Cell> cells = {Cell(gpu_text(process), Tone::heading),
                             pid_cell(process),
                             text_cell(process.user),
                             kind_text(process),
                             memory_cell(process),
                             percent_cell(process.sm_utilization),
                             percent_cell(process.memory_utilization),
                             percent_cell(process.encoder_utilization),
                             percent_cell(process.decoder_utilization),
                             percent_cell(process.cpu),
                             process.host_memory ? Cell(memory_text(*process.host_memory)) : unknown_cell(),
                             running_cell(process, snapshot)};
  if (placed) cells.emplace_back(place_of(process));
  cells.push_back(text_cell(process.command));
  table.add(std::move(cells));
}

void add_unattributed(Table& table, const device::Gpu& gpu, Bytes rest) {
  std::vector<Cell> cells = {Cell(fmt::format("{}", gpu.index), Tone::heading),
                             {"-", Tone::dim},
                             {"-", Tone::dim},
                             {"", Tone::dim},
                             {memory_text(rest), Tone::warning},
                             {"in use, but held by no process that is visible from here", Tone::dim}};
  table.add_spanning(std::move(cells));
}

}  // namespace

// Empty text is known, too: the process is in no container, no pod, no job.
std::string place_of(const Process& process) {
  const auto told = [](const device::Reading<std::string>& text) { return text && !text->empty(); };
  if (told(process.pod)) {
    const std::string name_space = told(process.kubernetes_namespace) ? *process.kubernetes_namespace + "/" : "";
    return "pod " + name_space + *process.pod;
  }
  if (told(process.slurm_job)) return "slurm " + *process.slurm_job;
  if (told(process.pod_uid)) return "pod " + process.pod_uid->substr(0, 8);
  if (told(process.container)) {
    const std::string runtime = told(process.container_runtime) ? *process.container_runtime : "container";
    return runtime + " " + process.container->substr(0, 12);
  }
  if (told(process.systemd_unit) && !is_plain_login(*process.systemd_unit)) return *process.systemd_unit;
  return {};
}

std::string kind_text(const Process& process) {
  using namespace device::process_kind;
  std::string text;
  if (process.kind & kMps) text += "M";
  if (process.kind & kCompute) text += text.empty() ? "C" : "+C";
  if (process.kind & kGraphics) text += text.empty() ? "G" : "+G";
  return text;
}

std::vector<const Process*> in_order(const Snapshot& snapshot) {
  std::vector<const Process*> processes;
  for (const Process& process : snapshot.processes) processes.push_back(&process);
  const auto memory = [](const Process* process) { return process->memory.value_or(Bytes{-1}).count; };
  std::stable_sort(processes.begin(), processes.end(), [&](const Process* a, const Process* b) {
    if (a->gpu != b->gpu) return a->gpu < b->gpu;
    if (memory(a) != memory(b)) return memory(a) > memory(b);
    return a->pid < b->pid;
  });
  return processes;
}

void print_processes(const Snapshot& snapshot, std::optional<int> limit, const Console& console) {
  const auto processes = in_order(snapshot);
  std::map<int, std::pair<const device::Gpu*, Bytes>> rest_of;
  for (const device::Gpu& gpu : snapshot.gpus)
    if (const auto rest = unattributed_memory(snapshot, gpu); rest && *rest >= kWorthARow && !gpu.unified_memory)
      rest_of[gpu.index] = {&gpu, *rest};
  if (processes.empty() && rest_of.empty()) {
    console.out << "no process uses a GPU\n";
    return;
  }
  const int all = static_cast<int>(processes.size() + rest_of.size());
  if (limit && *limit < 3 && all > *limit - 1) {
    console.out << paint(console, Tone::dim, fmt::format("{} processes", processes.size())) << '\n';
    return;
  }
  const bool placed = std::any_of(processes.begin(), processes.end(),
                                  [](const Process* process) { return !place_of(*process).empty(); });
  Table table(process_columns(placed));
  const int room = limit && all > *limit - 1 ? std::max(*limit - 2, 0) : all;  // a line for the titles, one to count
  int shown = 0;
  bool hidden_pid = false;
  const auto close_gpu = [&](int gpu) {
    const auto found = rest_of.find(gpu);
    if (found == rest_of.end() || shown >= room) return;
    add_unattributed(table, *found->second.first, found->second.second);
    rest_of.erase(found);
    ++shown;
  };
  for (const device::Gpu& gpu : snapshot.gpus) {
    for (const Process* process : processes) {
      if (process->gpu != gpu.index || shown >= room) continue;
      add_process(table, *process, snapshot, placed);
      hidden_pid = hidden_pid || !process->pid_here;
      ++shown;
    }
    close_gpu(gpu.index);
  }
  table.print(console);
  if (shown < all) console.out << paint(console, Tone::dim, fmt::format("and {} more", all - shown)) << '\n';
  if (hidden_pid && !limit)
    console.out << paint(console, Tone::dim,
                         "* the host's number: this container sees its own processes only (start it with --pid=host)")
                << '\n';
}

}  // namespace gpuwright::cli
