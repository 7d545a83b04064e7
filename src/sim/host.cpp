#include "sim/host.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/embedded.h"
#include "base/file.h"
#include "base/text.h"
#include "sim/host_state.h"

namespace gpuwright::sim {
namespace {

constexpr std::int64_t kMaxFile = 1 << 20;
constexpr std::int64_t kNanoseconds = 1'000'000'000;

std::int64_t clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * kNanoseconds + time.tv_nsec;
}

SharedState* map_shared() {
  void* page = mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  return new (page) SharedState;
}

// The files of data/scenarios are compiled in by their names; the index lists them.
constexpr std::string_view kNames[] = {GPUWRIGHT_SCENARIOS};

std::optional<std::string_view> built_in(std::string_view name) {
  if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) return std::nullopt;
  return embedded_data(fmt::format("{}.toml", name));
}

}  // namespace

Host::State::State(Scenario what) : scenario(std::move(what)), shared(map_shared()) {
  start_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
  start_unix_ns = clock_ns(CLOCK_REALTIME);
  if (scenario.stopped_at) shared->stopped_at = *scenario.stopped_at;
}

Host::State::~State() {
  munmap(shared, sizeof(SharedState));
}

double Host::State::now() const {
  const double stopped = shared->stopped_at.load();
  if (stopped >= 0) return stopped;
  return static_cast<double>(clock_ns(CLOCK_MONOTONIC) - start_monotonic_ns) / static_cast<double>(kNanoseconds);
}

std::int64_t Host::State::unix_ns(double seconds) const {
  return start_unix_ns + static_cast<std::int64_t>(std::clamp(seconds, -1e9, 1e9) * static_cast<double>(kNanoseconds));
}

Host::Host(std::unique_ptr<State> state) : state_(std::move(state)) {}
Host::~Host() = default;

Result<std::shared_ptr<Host>> Host::from_toml(std::string_view text, const std::string& name) {
  Scenario scenario = GW_TRY(parse_scenario(text, name));
  return std::shared_ptr<Host>(new Host(std::make_unique<State>(std::move(scenario))));
}

Result<std::shared_ptr<Host>> Host::from_scenario(const std::string& name_or_path) {
  if (const auto text = built_in(name_or_path)) return from_toml(*text, name_or_path);
  const bool is_path = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".toml");
  if (is_path || path_exists(name_or_path)) return from_toml(GW_TRY(read_file(name_or_path, kMaxFile)), name_or_path);
  const std::vector<std::string> names(std::begin(kNames), std::end(kNames));
  const auto near = nearest_name(name_or_path, names);
  return fail(ErrorCode::not_found, fmt::format("there is no scenario \"{}\"", name_or_path),
              near ? fmt::format("did you mean {}? Or the path of a file", *near)
                   : fmt::format("built in are {}; or the path of a file", fmt::join(names, ", ")));
}

const std::string& Host::name() const {
  return state_->scenario.name;
}
const std::string& Host::hostname() const {
  return state_->scenario.hostname;
}
void Host::set_time(double seconds) {
  state_->shared->stopped_at = std::max(0.0, seconds);
}
double Host::time() const {
  return state_->now();
}

std::optional<ProcessFacts> Host::process(std::int64_t pid) const {
  const double now = state_->now();
  for (const ProcessSpec& process : state_->scenario.processes) {
    if (process.pid != pid || !process.interval.holds(now)) continue;
    ProcessFacts facts;
    facts.user = process.user;
    facts.command = process.command;
    facts.executable = process.executable;
    facts.cgroup = process.cgroup;
    facts.started_unix_ns = state_->unix_ns(process.interval.start - process.started_before);
    facts.host_memory_bytes = process.host_memory;
    facts.cpu_cores = process.cpu_cores;
    facts.pid_here = process.pid_here;
    return facts;
  }
  return std::nullopt;
}

std::int64_t Host::calls_for_gpu(int index) const {
  const bool known = index >= 0 && static_cast<std::size_t>(index) < state_->scenario.gpus.size();
  return known ? state_->shared->calls_for_gpu[static_cast<std::size_t>(index)].load() : 0;
}

std::vector<BuiltInScenario> built_in_scenarios() {
  std::vector<BuiltInScenario> scenarios;
  for (const std::string_view name : kNames) {
    const auto scenario = parse_scenario(built_in(name).value_or(""), name);
    scenarios.push_back({std::string(name), scenario ? scenario->summary : ""});
  }
  return scenarios;
}

std::vector<std::string> built_in_names() {
  return {std::begin(kNames), std::end(kNames)};
}

std::string default_scenario() {
  return "8xh100";
}

}  // namespace gpuwright::sim
