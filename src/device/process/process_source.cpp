// Who the processes are that the other sources found on the GPUs: user, command, container, pod, job.
//
// Drivers know no PID namespaces: NVML tells the host's pid, wherever it is asked. From within a container such a pid
// is a stranger's number, and /proc/PID of that number may be another process; it is only read where the namespace that
// /proc shows is the host's. Sources that found a process in /proc themselves (fdinfo) have set pid_here.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "device/process/cgroup.h"
#include "device/process/pods.h"
#include "device/process/proc_files.h"
#include "device/process/users.h"
#include "device/source.h"
#include "device/sysfs/attribute.h"
#include "sim/host.h"

namespace gpuwright::device {
namespace {

constexpr std::size_t kMostCommandBytes = 4096;
constexpr std::size_t kMostProcesses = 65536;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kFactsLast = 30 * kSecond;  // exec and moves between cgroups are seen after so long

// What seldom changes in the life of a process.
struct Facts {
  Reading<std::string> user, command, executable;
  Belonging belonging;
  Pods::Pod pod;
  Reading<std::string> belonging_known;  // a value when `belonging` was read
  std::int64_t start_tick = 0;
  std::int64_t read_at = 0;
};

struct CpuSample {
  std::int64_t ticks = 0, at = 0;
};

void set_all(Process& process, Why why) {
  for (Reading<std::string>* reading :
       {&process.user, &process.command, &process.executable, &process.container, &process.container_runtime,
        &process.pod, &process.pod_uid, &process.kubernetes_namespace, &process.slurm_job, &process.systemd_unit})
    *reading = why;
  process.started = why;
  process.cpu = why;
  process.host_memory = why;
}

class ProcessSource : public Source {
 public:
  explicit ProcessSource(const SourceOptions& options)
      : options_(options), proc_(options.root + "/proc"), users_(options.root), pods_(options.root) {}

  std::string_view name() const override { return "process"; }

  void read(Snapshot& snapshot, CallWatch& watch) override {
    std::map<std::int64_t, Process> known;  // a process with two GPUs is read once
    std::map<std::int64_t, CpuSample> cpu_now;
    if (!options_.simulated && !snapshot.processes.empty()) look_at_proc();
    for (Process& process : snapshot.processes) {
      if (known.size() >= kMostProcesses) break;
      auto [entry, is_new] = known.try_emplace(process.pid);
      if (is_new) {
        entry->second.pid = process.pid;
        entry->second.pid_here = process.pid_here;
        if (options_.simulated) {
          fill_from_host(entry->second);
        } else {
          // cmdline waits for the process' memory map, which one that is stuck in the kernel may hold.
          watch.enter("process", -1, "reading of /proc/PID");
          fill_from_proc(entry->second, snapshot, cpu_now, watch);
          watch.leave();
        }
      }
      copy_facts(entry->second, process);
    }
    cpu_before_ = std::move(cpu_now);
    std::erase_if(facts_, [&](const auto& item) { return !known.contains(item.first); });
  }

 private:
  static void copy_facts(const Process& from, Process& to) {
    to.pid_here = from.pid_here;
    to.user = from.user;
    to.command = from.command;
    to.executable = from.executable;
    to.started = from.started;
    to.cpu = from.cpu;
    to.host_memory = from.host_memory;
    to.container = from.container;
    to.container_runtime = from.container_runtime;
    to.pod = from.pod;
    to.pod_uid = from.pod_uid;
    to.kubernetes_namespace = from.kubernetes_namespace;
    to.slurm_job = from.slurm_job;
    to.systemd_unit = from.systemd_unit;
  }

  void look_at_proc() {
    constexpr std::string_view kHostNamespace = "pid:[4026531836]";  // PROC_PID_INIT_INO, linux/proc_ns.h
    own_namespace_ = read_link(proc_ + "/self/ns/pid");
    nested_ = own_namespace_.known() && *own_namespace_ != kHostNamespace;
    if (!boot_time_) boot_time_ = parse_boot_time(read_start(proc_ + "/stat", 1 << 20).text);
  }

  void fill_from_host(Process& process) const {
    const auto facts = options_.simulated->process(process.pid);
    // Without a number here it has no folder in /proc either.
    if (!facts || !facts->pid_here) {
      process.pid_here = Why::not_visible;
      return set_all(process, Why::not_visible);
    }
    process.pid_here = *facts->pid_here;
    process.user = facts->user;
    process.command = facts->command;
    process.executable = facts->executable;
    process.started = UnixTime{facts->started_unix_ns};
    process.cpu = Ratio{facts->cpu_cores};
    process.host_memory = Bytes{facts->host_memory_bytes};
    const Belonging belonging = belonging_of(facts->cgroup);
    // This machine's folders know nothing of simulated pods.
    const Reading<std::string> no_name = belonging.pod_uid.empty() ? Reading(std::string()) : Why::no_data;
    set_belonging(belonging, {no_name, no_name}, process);
  }

  static void set_belonging(const Belonging& belonging, const Pods::Pod& pod, Process& process) {
    process.container = belonging.container;
    process.container_runtime = belonging.runtime;
    process.pod_uid = belonging.pod_uid;
    process.slurm_job = belonging.slurm_job;
    process.systemd_unit = belonging.unit;
    process.pod = pod.name;
    process.kubernetes_namespace = pod.kubernetes_namespace;
  }

  // The driver's pid is the host's, but /proc shows a container's processes.
  bool is_stranger(const Process& process) const {
    return nested_ && options_.root.empty() && !process.pid_here.known();
  }

  void fill_from_proc(Process& process, const Snapshot& snapshot, std::map<std::int64_t, CpuSample>& cpu_now,
                      CallWatch& watch) {
    const std::int64_t pid = process.pid_here.known() && options_.root.empty() ? *process.pid_here : process.pid;
    const std::string folder = proc_ + "/" + std::to_string(pid);
    const FileText status_text = is_stranger(process) ? FileText{{}, ENOENT} : read_start(folder + "/status");
    if (!status_text) {
      const Why why = status_text.error == ENOENT || status_text.error == ENOTDIR || status_text.error == ESRCH
                          ? Why::not_visible
                          : why_of(status_text.error);
      if (!process.pid_here.known()) process.pid_here = Why::not_visible;
      return set_all(process, why);
    }
    const ProcStatus status = parse_proc_status(status_text.text);
    if (!process.pid_here.known()) process.pid_here = pid_here(folder, pid, status);
    process.host_memory = status.resident ? Reading<Bytes>(*status.resident) : Why::no_data;

    const auto stat = parse_proc_stat(read_start(folder + "/stat").text);
    if (stat) {
      set_times(*stat, process);
      set_cpu(pid, *stat, snapshot.monotonic_ns, process, cpu_now);
    } else {
      process.started = Why::no_data;
      process.cpu = Why::no_data;
    }
    const Facts& facts = facts_of(pid, folder, status, stat, snapshot.monotonic_ns, watch);
    process.user = facts.user;
    process.command = facts.command;
    process.executable = facts.executable;
    if (facts.belonging_known)
      set_belonging(facts.belonging, facts.pod, process);
    else
      for (Reading<std::string>* reading :
           {&process.container, &process.container_runtime, &process.pod, &process.pod_uid,
            &process.kubernetes_namespace, &process.slurm_job, &process.systemd_unit})
        *reading = facts.belonging_known.why();
  }

  // This program and the process may be in different namespaces below that of `root`/proc.
  Reading<std::int64_t> pid_here(const std::string& folder, std::int64_t pid, const ProcStatus& status) const {
    if (!nested_) return pid;
    const auto its_namespace = read_link(folder + "/ns/pid");
    if (!its_namespace || *its_namespace != *own_namespace_ || status.pids.empty()) return Why::not_visible;
    return status.pids.back();
  }

  void set_times(const ProcStat& stat, Process& process) const {
    static const std::int64_t kTicks = std::max<long>(::sysconf(_SC_CLK_TCK), 1);
    process.started = Why::no_data;
    if (!boot_time_ || stat.start_tick > INT64_MAX / kSecond) return;
    const auto since_boot = checked_multiply(stat.start_tick / kTicks, kSecond);
    const auto boot = checked_multiply(*boot_time_, kSecond);
    const auto whole = since_boot && boot ? checked_add(*since_boot, *boot) : std::nullopt;
    if (whole) process.started = UnixTime{*whole + stat.start_tick % kTicks * (kSecond / kTicks)};
  }

  void set_cpu(std::int64_t pid, const ProcStat& stat, std::int64_t now, Process& process,
               std::map<std::int64_t, CpuSample>& cpu_now) const {
    static const double kTicks = static_cast<double>(std::max<long>(::sysconf(_SC_CLK_TCK), 1));
    cpu_now[pid] = {stat.cpu_ticks, now};
    process.cpu = Why::needs_two_samples;
    const auto before = cpu_before_.find(pid);
    if (before == cpu_before_.end() || now <= before->second.at) return;
    const auto facts = facts_.find(pid);
    if (facts == facts_.end() || facts->second.start_tick != stat.start_tick) return;  // another of the same number
    const double seconds = static_cast<double>(now - before->second.at) / static_cast<double>(kSecond);
    const double ticks = static_cast<double>(std::max<std::int64_t>(stat.cpu_ticks - before->second.ticks, 0));
    process.cpu = Ratio{ticks / kTicks / seconds};
  }

  const Facts& facts_of(std::int64_t pid, const std::string& folder, const ProcStatus& status,
                        const std::optional<ProcStat>& stat, std::int64_t now, CallWatch& watch) {
    const std::int64_t start_tick = stat ? stat->start_tick : -1;
    auto [entry, is_new] = facts_.try_emplace(pid);
    Facts& facts = entry->second;
    if (!is_new && facts.start_tick == start_tick && now - facts.read_at < kFactsLast) return facts;
    facts = {};
    facts.start_tick = start_tick;
    facts.read_at = now;
    facts.executable = read_link(folder + "/exe");
    if (facts.executable.why() == Why::not_supported && !facts.executable) facts.executable = Why::no_data;
    facts.command = command_of(folder, stat);
    const FileText cgroup = read_start(folder + "/cgroup");
    if (cgroup) {
      facts.belonging = belonging_of(cgroup.text);
      facts.pod = pods_.find(facts.belonging.pod_uid);
      facts.belonging_known = std::string();
    } else {
      facts.belonging_known = why_of(cgroup.error);
    }
    facts.user = status.uid ? Reading<std::string>(users_.name_of(*status.uid, watch)) : Why::no_data;
    return facts;
  }

  static Reading<std::string> command_of(const std::string& folder, const std::optional<ProcStat>& stat) {
    const FileText file = read_start(folder + "/cmdline", kMostCommandBytes);
    const std::string command = parse_command_line(file.text);
    if (!command.empty()) return command;
    if (stat) return "[" + stat->name + "]";  // kernel threads and zombies have no arguments; ps writes it so
    return file ? Why::no_data : why_of(file.error);
  }

  SourceOptions options_;
  std::string proc_;
  Users users_;
  Pods pods_;
  Reading<std::string> own_namespace_;
  bool nested_ = false;
  std::optional<std::int64_t> boot_time_;
  std::map<std::int64_t, Facts> facts_;
  std::map<std::int64_t, CpuSample> cpu_before_;
};

}  // namespace

std::unique_ptr<Source> process_source(const SourceOptions& options) {
  return std::make_unique<ProcessSource>(options);
}

}  // namespace gpuwright::device
