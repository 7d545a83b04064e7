#include "device/report_owners.h"

#include <algorithm>
#include <cmath>

namespace gpuwright::device {
namespace {

// Weeks of short processes must not fill the memory: of those that ended, the ones with most GPU time are kept.
constexpr std::size_t kMostProcesses = 4096;
constexpr std::size_t kMostHeld = 4096;

std::int64_t start_of(const Process& process) {
  return process.started ? process.started->nanoseconds : 0;
}

void name(UserReport& report, const Process& process) {
  report.user = process.user.value_or("");
  report.container = process.container.value_or("");
  report.pod = process.pod.value_or("");
  report.slurm_job = process.slurm_job.value_or("");
}

double half(Bytes a, Bytes b) {
  return (static_cast<double>(a.count) + static_cast<double>(b.count)) / 2;
}

// The share of each in what the GPU used: by use where it is known of all and somebody used it, else by memory, else in
// equal parts.
std::vector<double> shares_of(const std::vector<const Tenant*>& tenants, bool& by_use) {
  std::vector<double> uses, memories;
  double use = 0, memory = 0;
  for (const Tenant* tenant : tenants) {
    if (tenant->use) use += uses.emplace_back(*tenant->use);
    if (tenant->memory) memory += memories.emplace_back(static_cast<double>(tenant->memory->count));
  }
  by_use = uses.size() == tenants.size() && use > 0;
  std::vector<double> shares(tenants.size(), 1.0 / static_cast<double>(tenants.size()));
  const bool by_memory = memories.size() == tenants.size() && memory > 0;
  if (!by_use && !by_memory) return shares;
  for (std::size_t i = 0; i < shares.size(); ++i) shares[i] = by_use ? uses[i] / use : memories[i] / memory;
  return shares;
}

void keep_longest(std::vector<HeldMemory>& held, std::size_t most) {
  const auto longer = [](const HeldMemory& a, const HeldMemory& b) { return a.duration() > b.duration(); };
  std::stable_sort(held.begin(), held.end(), longer);
  if (held.size() > most) held.resize(most);
}

std::vector<UserReport> by_time(std::vector<UserReport> reports) {
  std::stable_sort(reports.begin(), reports.end(),
                   [](const UserReport& a, const UserReport& b) { return a.held > b.held; });
  return reports;
}

}  // namespace

std::vector<Tenant> tenants_of(const Snapshot& snapshot, const Gpu& gpu) {
  std::vector<Tenant> tenants;
  for (const Process& process : snapshot.processes) {
    if (process.gpu != gpu.index) continue;
    const std::optional<double> use =
        process.sm_utilization ? std::optional(process.sm_utilization->value) : std::nullopt;
    const auto old = std::find_if(tenants.begin(), tenants.end(),
                                  [&process](const Tenant& tenant) { return tenant.process.pid == process.pid; });
    if (old == tenants.end()) {
      tenants.push_back({process, process.memory.optional(), use});
      continue;
    }
    old->memory = old->memory && process.memory ? std::optional(*old->memory + *process.memory) : std::nullopt;
    if (use) old->use = std::min(1.0, old->use.value_or(0) + *use);
  }
  // A process that is alone on the GPU is who used it.
  if (tenants.size() == 1 && !tenants[0].use && gpu.utilization) tenants[0].use = gpu.utilization->value;
  return tenants;
}

void Owners::add(const Interval& interval, Seconds idle_after, Bytes least_held) {
  std::vector<const Tenant*> stayed;  // as they are at the end
  for (const Tenant& tenant : interval.at_end) {
    const bool was_there = std::any_of(interval.at_start.begin(), interval.at_start.end(), [&](const Tenant& before) {
      return before.process.pid == tenant.process.pid && start_of(before.process) == start_of(tenant.process);
    });
    if (was_there) stayed.push_back(&tenant);
  }
  if (!stayed.empty()) {
    add_use(interval, stayed);
    share_energy(interval, stayed);
  }
  add_holding(interval, idle_after, least_held);
  if (processes_.size() > 2 * kMostProcesses) forget_small_processes();
}

void Owners::add_use(const Interval& interval, const std::vector<const Tenant*>& stayed) {
  struct Share {
    double use = 0;
    bool known = false;
    Bytes memory;
  };
  std::map<std::string, Share> users;
  for (const Tenant* tenant : stayed) {
    UserReport& report = process_report(tenant->process);
    Share& share = users[tenant->process.user.value_or("")];
    const Bytes memory = tenant->memory.value_or(Bytes{});
    report.held += interval.time;
    report.memory_max = std::max(report.memory_max, memory);
    share.memory += memory;
    if (!tenant->use) continue;
    report.busy += interval.time * *tenant->use;
    share.use = std::min(1.0, share.use + *tenant->use);
    report.busy_known = share.known = true;
  }
  for (const auto& [user, share] : users) {
    UserReport& report = users_[user];
    report.user = user;
    report.held += interval.time;
    report.busy += interval.time * share.use;
    report.busy_known |= share.known;
    report.memory_max = std::max(report.memory_max, share.memory);
  }
}

void Owners::share_energy(const Interval& interval, const std::vector<const Tenant*>& stayed) {
  if (!interval.energy) return;
  bool by_use = false;
  const std::vector<double> shares = shares_of(stayed, by_use);
  for (std::size_t i = 0; i < stayed.size(); ++i) {
    for (UserReport* report : {&process_report(stayed[i]->process), &user_report(stayed[i]->process)}) {
      report->energy.value += interval.energy->value * shares[i];
      report->energy_by_use &= by_use;
    }
  }
}

void Owners::add_holding(const Interval& interval, Seconds idle_after, Bytes least_held) {
  const Reading<Ratio>& gpu_use = interval.after->utilization;
  const bool gpu_is_idle = gpu_use && gpu_use->value == 0;
  for (const Tenant& tenant : interval.at_end) {
    const bool idle = tenant.use ? *tenant.use == 0 : gpu_is_idle;
    if (!idle || !tenant.memory || *tenant.memory < least_held) continue;
    for (const Tenant& before : interval.at_start)
      if (before.process.pid == tenant.process.pid && start_of(before.process) == start_of(tenant.process) &&
          before.memory && *before.memory >= least_held)
        extend(interval, &tenant.process, *before.memory, *tenant.memory);
  }
  if (gpu_is_idle && interval.unattributed_before && interval.unattributed_after &&
      *interval.unattributed_before >= least_held && *interval.unattributed_after >= least_held)
    extend(interval, nullptr, *interval.unattributed_before, *interval.unattributed_after);
  for (auto entry = stretches_.begin(); entry != stretches_.end();) {
    const bool over = std::get<0>(entry->first) == interval.gpu && !std::exchange(entry->second.touched, false);
    if (over) end_stretch(entry->second, idle_after, false);
    entry = over ? stretches_.erase(entry) : std::next(entry);
  }
}

void Owners::extend(const Interval& interval, const Process* process, Bytes before, Bytes after) {
  const StretchKey key{interval.gpu, process ? process->pid : 0, process ? start_of(*process) : 0};
  const auto [entry, is_new] = stretches_.try_emplace(key);
  Stretch& stretch = entry->second;
  if (is_new) {
    stretch.held.gpu = interval.gpu;
    stretch.held.from = interval.from;
    if (process) {
      stretch.held.pid = process->pid;
      stretch.held.user = process->user.value_or("");
      stretch.held.command = process->command.value_or("");
      stretch.held.container = process->container.value_or("");
      stretch.held.pod = process->pod.value_or("");
      stretch.held.slurm_job = process->slurm_job.value_or("");
    }
  }
  stretch.held.to = interval.to;
  stretch.byte_seconds += half(before, after) * interval.time.count();
  stretch.touched = true;
}

void Owners::end_stretch(Stretch& stretch, Seconds idle_after, bool still) {
  const Seconds duration = stretch.held.duration();
  if (duration < idle_after || duration <= Seconds(0)) return;
  stretch.held.memory = Bytes{std::llround(stretch.byte_seconds / duration.count())};
  stretch.held.still = still;
  held_.push_back(stretch.held);
  if (held_.size() >= 2 * kMostHeld) keep_longest(held_, kMostHeld);
}

void Owners::interrupt(int gpu, Seconds idle_after) {
  for (auto entry = stretches_.begin(); entry != stretches_.end();) {
    const bool over = std::get<0>(entry->first) == gpu;
    if (over) end_stretch(entry->second, idle_after, false);
    entry = over ? stretches_.erase(entry) : std::next(entry);
  }
}

UserReport& Owners::process_report(const Process& process) {
  const ProcessKey key{process.pid, start_of(process), process.started ? "" : process.command.value_or("")};
  const auto [entry, is_new] = processes_.try_emplace(key);
  if (is_new) {
    entry->second.pid = process.pid;
    entry->second.command = process.command.value_or("");
    name(entry->second, process);
  }
  return entry->second;
}

UserReport& Owners::user_report(const Process& process) {
  UserReport& report = users_[process.user.value_or("")];
  report.user = process.user.value_or("");
  return report;
}

void Owners::forget_small_processes() {
  std::vector<Seconds> times;
  for (const auto& [key, report] : processes_) times.push_back(report.held);
  std::nth_element(times.begin(), times.begin() + kMostProcesses, times.end(), std::greater<>());
  const Seconds least = times[kMostProcesses];
  for (auto entry = processes_.begin(); entry != processes_.end() && processes_.size() > kMostProcesses;)
    entry = entry->second.held <= least ? processes_.erase(entry) : std::next(entry);
}

void Owners::finish(Report& report, Seconds idle_after) {
  for (auto& [key, stretch] : stretches_) end_stretch(stretch, idle_after, true);
  stretches_.clear();
  keep_longest(held_, kMostHeld);
  report.held = std::move(held_);
  std::vector<UserReport> processes, users;
  for (auto& [key, process] : processes_) processes.push_back(std::move(process));
  for (auto& [key, user] : users_) users.push_back(std::move(user));
  report.processes = by_time(std::move(processes));
  report.users = by_time(std::move(users));
}

}  // namespace gpuwright::device
