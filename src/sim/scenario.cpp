#include "sim/scenario.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "sim/scenario_gpu.h"
#include "sim/toml_table.h"

namespace gpuwright::sim {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;
constexpr std::size_t kMaxProcesses = 4096;
constexpr std::size_t kMaxFaults = 4096;
constexpr std::int64_t kMebibyte = 1 << 20;
constexpr Range kSeconds{0, 1e9};
constexpr Range kPid{1, 4194304};  // PID_MAX_LIMIT of Linux on 64 bits
constexpr Range kShare{0, 1};

Result<Interval> read_interval(TomlTable& table, std::string_view start, std::string_view end) {
  Interval interval;
  interval.start = GW_TRY(table.number(start, kSeconds)).value_or(0);
  interval.end = GW_TRY(table.number(end, kSeconds)).value_or(kForever);
  if (interval.end <= interval.start) return table.wrong(end, "this is not after the start");
  return interval;
}

// "13.0" as NVML has it: 13000.
Result<int> read_cuda(TomlTable& table, int otherwise) {
  const auto text = GW_TRY(table.text("cuda"));
  if (!text) return otherwise;
  const auto parts = split(*text, '.');
  const auto major = to_integer(parts.front()), minor = parts.size() == 2 ? to_integer(parts[1]) : std::nullopt;
  if (!major || !minor || *major < 1 || *major > 99 || *minor < 0 || *minor > 9)
    return table.wrong("cuda", "write a version like \"13.0\"");
  return static_cast<int>(*major * 1000 + *minor * 10);
}

Status read_driver(TomlTable& table, DriverSpec& driver) {
  driver.version = GW_TRY(table.text("version")).value_or(driver.version);
  driver.library_version = GW_TRY(table.text("library_version")).value_or(driver.version);
  driver.cuda = GW_TRY(read_cuda(table, driver.cuda));
  driver.generation = static_cast<int>(GW_TRY(table.integer("generation", {1, 9999})).value_or(0));
  driver.missing = GW_TRY(table.texts("missing_symbols"));
  driver.strict_versions = GW_TRY(table.flag("strict_versions")).value_or(false);
  driver.process_layout =
      static_cast<ProcessLayout>(GW_TRY(table.word("process_layout", {"of the symbol", "early 535"}, 0)));
  driver.process_memory_told = GW_TRY(table.flag("process_memory")).value_or(true);
  driver.process_samples_told = GW_TRY(table.flag("process_utilization")).value_or(true);
  driver.impossible_samples = GW_TRY(table.flag("impossible_samples")).value_or(false);
  driver.blank_values = GW_TRY(table.flag("blank_values")).value_or(false);
  if (driver.version.size() >= 80 || driver.library_version.size() >= 80)
    return table.wrong("version", "a version has fewer than 80 letters");
  return {};
}

// gpus = [0, 1]; nothing where it is not given.
Result<std::vector<int>> read_gpu_list(TomlTable& table, const Scenario& scenario) {
  std::vector<int> gpus;
  const double last = static_cast<double>(scenario.gpus.size()) - 1;
  for (const std::int64_t gpu : GW_TRY(table.integers("gpus", {0, last}))) {
    if (std::find(gpus.begin(), gpus.end(), gpu) != gpus.end()) return table.wrong("gpus", "a GPU is named twice");
    gpus.push_back(static_cast<int>(gpu));
  }
  return gpus;
}

Result<std::uint8_t> read_kind(TomlTable& table) {
  std::uint8_t kind = 0;
  for (const std::string& word : GW_TRY(table.texts("kind"))) {
    const int bit = word == "compute" ? 1 : word == "graphics" ? 2 : word == "mps" ? 4 : 0;
    if (bit == 0) return table.wrong("kind", fmt::format("\"{}\" is not compute, graphics or mps", word));
    kind = static_cast<std::uint8_t>(kind | bit);
  }
  return kind == 0 ? std::uint8_t{1} : kind;
}

Status read_curve(TomlTable& table, std::string_view key, Curve& curve) {
  if (const auto found = GW_TRY(table.curve(key, kShare))) curve = *found;
  return {};
}

Status read_work(TomlTable& table, ProcessSpec& process) {
  process.memory = static_cast<std::int64_t>(GW_TRY(table.number("memory_mib", {0, 4e6})).value_or(0) * kMebibyte);
  GW_TRY(read_curve(table, "sm", process.sm));
  process.memory_load = process.sm.scaled(0.6);
  GW_TRY(read_curve(table, "memory_load", process.memory_load));
  GW_TRY(read_curve(table, "encoder", process.encoder));
  GW_TRY(read_curve(table, "decoder", process.decoder));
  process.interval = GW_TRY(read_interval(table, "start", "end"));
  process.started_before = GW_TRY(table.number("started_before", kSeconds)).value_or(0);
  process.host_memory =
      static_cast<std::int64_t>(GW_TRY(table.number("host_memory_mib", {0, 1e8})).value_or(0) * kMebibyte);
  process.cpu_cores = GW_TRY(table.number("cpu_cores", {0, 4096})).value_or(0);
  return {};
}

Status read_words(TomlTable& table, ProcessSpec& process) {
  process.kind = GW_TRY(read_kind(table));
  process.user = GW_TRY(table.text("user")).value_or("user");
  process.command = GW_TRY(table.text("command")).value_or("python");
  process.executable = GW_TRY(table.text("executable")).value_or(process.command.substr(0, process.command.find(' ')));
  process.cgroup = GW_TRY(table.text("cgroup")).value_or("0::/user.slice/user-1000.slice/session-1.scope\n");
  return {};
}

// pid = 71 | "self" | [71, 72]: one process on all of `gpus`, or one a GPU.
Result<std::vector<std::int64_t>> read_pids(TomlTable& table, std::size_t gpus) {
  std::vector<std::int64_t> pids;
  if (table.has("pid") && table.text("pid").has_value()) {
    if (GW_TRY(table.text("pid")) != "self") return table.wrong("pid", "write a number, a list or \"self\"");
    return std::vector<std::int64_t>{getpid()};
  }
  pids = GW_TRY(table.integers("pid", kPid));
  if (pids.empty())
    return table.refuse("every [[process]] needs a pid", "a number, a list with one a GPU, or \"self\"");
  if (pids.size() > 1 && pids.size() != gpus)
    return table.wrong("pid", fmt::format("{} pids for {} GPUs", pids.size(), gpus), "one in all, or one a GPU");
  return pids;
}

Status check_instance(TomlTable& table, const Scenario& scenario, const ProcessSpec& process) {
  if (!process.instance) return {};
  for (const int gpu : process.gpus)
    if (static_cast<std::size_t>(*process.instance) >= scenario.gpus[static_cast<std::size_t>(gpu)].instances.size())
      return table.wrong("instance", fmt::format("GPU {} has no such MIG instance", gpu));
  return {};
}

Status read_process(TomlTable& table, Scenario& scenario) {
  ProcessSpec process;
  process.gpus = GW_TRY(read_gpu_list(table, scenario));
  if (!table.has("gpus"))
    for (std::size_t i = 0; i < scenario.gpus.size(); ++i) process.gpus.push_back(static_cast<int>(i));
  GW_TRY(read_words(table, process));
  GW_TRY(read_work(table, process));
  if (const auto instance = GW_TRY(table.integer("instance", {0, 31}))) process.instance = static_cast<int>(*instance);
  GW_TRY(check_instance(table, scenario, process));
  const auto pids = GW_TRY(read_pids(table, process.gpus.size()));
  const auto here = GW_TRY(table.integers("pid_here", kPid));
  if (!here.empty() && here.size() != pids.size()) return table.wrong("pid_here", "as many as pids are needed");
  for (std::size_t i = 0; i < pids.size(); ++i) {
    ProcessSpec one = process;
    one.pid = pids[i];
    if (pids.size() > 1) one.gpus = {process.gpus[i]};
    if (!here.empty())
      one.pid_here = here[i];
    else if (!scenario.pid_namespace)
      one.pid_here = one.pid;
    scenario.processes.push_back(std::move(one));
  }
  if (scenario.processes.size() > kMaxProcesses)
    return table.refuse(fmt::format("more than {} processes", kMaxProcesses));
  return {};
}

const std::vector<std::string>& fault_names() {
  static const std::vector<std::string> kNames = {"lost",       "needs reset", "no permission", "failed", "xid",
                                                  "ecc",        "remap",       "throttle",      "hang",   "slow",
                                                  "not loaded", "mismatch",    "asleep"};
  return kNames;
}

Result<std::uint64_t> read_reasons(TomlTable& table) {
  static constexpr std::pair<std::string_view, std::uint64_t> kReasons[] = {{"idle", 0x1},
                                                                            {"application clocks", 0x2},
                                                                            {"software power cap", 0x4},
                                                                            {"hardware slowdown", 0x8},
                                                                            {"sync boost", 0x10},
                                                                            {"software thermal", 0x20},
                                                                            {"hardware thermal", 0x40},
                                                                            {"hardware power brake", 0x80},
                                                                            {"display clocks", 0x100}};
  std::uint64_t bits = 0;
  for (const std::string& word : GW_TRY(table.texts("reasons"))) {
    const auto* found = std::find_if(std::begin(kReasons), std::end(kReasons),
                                     [&word](const auto& reason) { return reason.first == word; });
    if (found == std::end(kReasons)) return table.wrong("reasons", fmt::format("\"{}\" is no reason", word));
    bits |= found->second;
  }
  return bits;
}

Status read_effect(TomlTable& table, Fault& fault) {
  switch (fault.kind) {
    case FaultKind::xid:
      fault.code = static_cast<int>(GW_TRY(table.integer("code", {1, 999})).value_or(0));
      return fault.code == 0 ? Status(table.refuse("an Xid needs a code")) : Status();
    case FaultKind::remap:
      fault.pending = GW_TRY(table.flag("pending")).value_or(false);
      fault.failure = GW_TRY(table.flag("failure")).value_or(false);
      [[fallthrough]];
    case FaultKind::ecc:
      fault.corrected = GW_TRY(table.integer("corrected", {0, 1e12})).value_or(0);
      fault.uncorrected = GW_TRY(table.integer("uncorrected", {0, 1e12})).value_or(0);
      return {};
    case FaultKind::throttle:
      fault.reasons = GW_TRY(read_reasons(table));
      fault.clock_share = GW_TRY(table.number("clock_share", kShare)).value_or(1);
      return {};
    case FaultKind::slow:
      fault.microseconds = GW_TRY(table.integer("microseconds", {0, 6e7})).value_or(0);
      [[fallthrough]];
    case FaultKind::hang:
      fault.function = GW_TRY(table.text("function")).value_or("");
      return {};
    default:
      return {};
  }
}

Status read_fault(TomlTable& table, Scenario& scenario) {
  Fault fault;
  if (!table.has("kind"))
    return table.refuse("every [[fault]] needs a kind", fmt::format("{}", fmt::join(fault_names(), ", ")));
  fault.kind = static_cast<FaultKind>(GW_TRY(table.word("kind", fault_names(), 0)));
  fault.gpus = GW_TRY(read_gpu_list(table, scenario));
  fault.interval = GW_TRY(read_interval(table, "at", "until"));
  GW_TRY(read_effect(table, fault));
  scenario.faults.push_back(std::move(fault));
  if (scenario.faults.size() > kMaxFaults) return table.refuse(fmt::format("more than {} faults", kMaxFaults));
  return {};
}

// Whoever starts finds room: else the sum of what processes hold would be more than there is.
Status check_memory(const TomlTable& root, const Scenario& scenario) {
  for (std::size_t gpu = 0; gpu < scenario.gpus.size(); ++gpu) {
    const GpuSpec& spec = scenario.gpus[gpu];
    std::vector<std::pair<double, std::int64_t>> changes;
    for (const ProcessSpec& process : scenario.processes) {
      if (std::find(process.gpus.begin(), process.gpus.end(), static_cast<int>(gpu)) == process.gpus.end()) continue;
      changes.emplace_back(process.interval.start, process.memory);
      changes.emplace_back(process.interval.end, -process.memory);
    }
    std::sort(changes.begin(), changes.end());  // of one moment: who leaves comes first
    std::int64_t used = spec.memory_reserved + spec.memory_other;
    for (const auto& [when, size] : changes)
      if ((used += size) > spec.memory_total)
        return root.refuse(fmt::format("after {} s the processes on GPU {} hold more than its {:.0f} MiB", when, gpu,
                                       Bytes{spec.memory_total}.mib()));
  }
  return {};
}

Status check_identities(const TomlTable& root, const Scenario& scenario) {
  std::set<std::string> seen;
  for (const GpuSpec& gpu : scenario.gpus)
    if (!seen.insert(gpu.uuid).second || !seen.insert(gpu.pci_address).second)
      return root.refuse(fmt::format("two GPUs have the UUID {} or the address {}", gpu.uuid, gpu.pci_address));
  return {};
}

// The memory of a machine whose GPU has none of its own is what that GPU can use.
Status read_host_memory(TomlTable& root, Scenario& scenario) {
  std::int64_t usual = std::int64_t{256} << 30;
  for (const GpuSpec& gpu : scenario.gpus)
    if (gpu.unified_memory()) usual = gpu.memory_total;
  const double total = GW_TRY(root.number("host_memory_mib", {64, 1e8})).value_or(Bytes{usual}.mib());
  const double used = GW_TRY(root.number("host_used_mib", {0, total})).value_or(std::min(8192.0, total / 4));
  scenario.memory_total = Bytes::from_mib(total).count;
  scenario.memory_used = Bytes::from_mib(used).count;
  return {};
}

Status read_root(TomlTable& root, Scenario& scenario) {
  scenario.summary = GW_TRY(root.text("summary")).value_or("");
  scenario.hostname = GW_TRY(root.text("hostname")).value_or("simulated");
  scenario.numa_nodes = static_cast<int>(GW_TRY(root.integer("numa_nodes", {1, 64})).value_or(1));
  scenario.cpus = static_cast<int>(GW_TRY(root.integer("cpus", {1, 4096})).value_or(16));
  scenario.pid_namespace = GW_TRY(root.flag("pid_namespace")).value_or(false);
  scenario.stopped_at = GW_TRY(root.number("stopped_at", kSeconds));
  scenario.pcie_throughput_microseconds =
      GW_TRY(root.integer("pcie_throughput_microseconds", {0, 6e7})).value_or(scenario.pcie_throughput_microseconds);
  scenario.driver.library_version = scenario.driver.version;
  GW_TRY(root.table("driver", "the driver", [&](TomlTable& table) { return read_driver(table, scenario.driver); }));
  GW_TRY(root.tables("gpu", "a GPU", [&](TomlTable& table) { return read_gpus(table, scenario); }));
  const auto gpus = static_cast<int>(scenario.gpus.size());
  for (int i = 0; i < gpus; ++i) scenario.gpus[static_cast<std::size_t>(i)].numa_node = i * scenario.numa_nodes / gpus;
  GW_TRY(root.tables("process", "a process", [&](TomlTable& table) { return read_process(table, scenario); }));
  GW_TRY(root.tables("fault", "a fault", [&](TomlTable& table) { return read_fault(table, scenario); }));
  GW_TRY(read_host_memory(root, scenario));
  GW_TRY(root.finish());
  GW_TRY(check_identities(root, scenario));
  return check_memory(root, scenario);
}

}  // namespace

bool Fault::concerns(int gpu) const {
  return gpus.empty() || std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

Result<Scenario> parse_scenario(std::string_view text, std::string_view origin) {
  if (text.size() > kMaxFile)
    return fail_at(ErrorCode::bad_input, {std::string(origin), {}, {}}, "a scenario of more than 1 MiB");
  const toml::table root = GW_TRY(parse_toml(text, origin));
  Scenario scenario;
  scenario.name = origin;
  TomlTable reader(root, origin, "a scenario");
  GW_TRY(read_root(reader, scenario));
  return scenario;
}

}  // namespace gpuwright::sim
