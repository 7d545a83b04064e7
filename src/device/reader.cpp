// How a read comes back in time. The collector is asked for a snapshot. When it falls silent in a call for
// call_deadline, it is killed, the device of that call is barred, and a new collector is asked for the others. A GPU
// driver in trouble often hangs in several devices at once, so that the second silence may last only half of what is
// left of the time, and after that time the rest is given up for this read: the next one goes on from there. What is
// barred is tried again after retry_after, unless the process that it stopped is still stuck in the kernel: then the
// device still hangs.
#include "device/reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "device/collector.h"
#include "device/roster.h"

namespace gpuwright::device {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// Deaths that tell nothing of a call: by the system's hand (out of memory), or between two readings.
constexpr int kMostBlameless = 2;
constexpr int kMostTries = 64;
constexpr Milliseconds kLongestRest{60000};

struct Barred {
  CollectorTrouble trouble;
  Clock::time_point until;
  std::optional<pid_t> stuck;
};

// How long a device that hung was left alone last.
struct Rest {
  Place place;
  Milliseconds lasted;
  Clock::time_point until;
};

SourceReport report_of(const CollectorTrouble& trouble) {
  SourceReport report{trouble.place.source, SourceReport::Outcome::failed, trouble.text, ""};
  if (report.source.empty()) report.source = "collector";
  report.hint = trouble.kind == CollectorTrouble::Kind::hung
                    ? "see the kernel's log (dmesg) for what the driver says; one that starts its GPUs anew for each "
                      "program is slow at first, too: turn persistence mode on (nvidia-smi -pm 1)"
                    : "see the kernel's log (dmesg) for what ended it";
  return report;
}

}  // namespace

struct Reader::State {
  explicit State(ReaderOptions given) : options(std::move(given)) {}
  ~State() {
    end_collector();
    collect_left_behind();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::vector<SourceEntry> entries() const {
    return options.make_sources ? options.make_sources(options.sources) : all_sources(options.sources);
  }
  Snapshot read();
  Snapshot ask();
  tl::expected<Snapshot, CollectorTrouble> ask_once(Patience patience);
  void readmit();
  Milliseconds rest_of(const Place& place);
  bool bar(const CollectorTrouble& trouble);
  std::optional<pid_t> end_collector();
  void collect_left_behind();
  std::vector<Place> forbidden() const;

  ReaderOptions options;
  Roster roster;
  std::optional<SourceSet> in_process;
  std::optional<Collector> collector;
  std::vector<Barred> barred;
  std::vector<Rest> rests;
  std::vector<pid_t> left_behind;            // killed, and not yet ended
  std::optional<CollectorTrouble> given_up;  // in this read
};

Snapshot Reader::State::read() {
  Snapshot snapshot;
  given_up.reset();
  if (options.in_process) {
    if (!in_process) in_process.emplace(entries(), options.sources);
    in_process->read(snapshot, no_watch());
  } else {
    readmit();
    snapshot = ask();
  }
  std::vector<CollectorTrouble> troubles;
  for (const Barred& each : barred) {
    troubles.push_back(each.trouble);
    if (each.trouble.place.device < 0) snapshot.sources.push_back(report_of(each.trouble));
  }
  if (given_up) {
    snapshot.sources.push_back(report_of(*given_up));
    given_up->place = {std::string(kEverySource), -1};
    troubles.push_back(*given_up);
  }
  roster.settle(snapshot, troubles);
  return snapshot;
}

Snapshot Reader::State::ask() {
  const auto start = Clock::now();
  const Milliseconds deadline = options.call_deadline;
  const Milliseconds least = std::max(deadline / 8, Milliseconds(1));
  Patience patience{deadline, deadline, deadline + deadline / 3};
  int blameless = 0;
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto answer = ask_once(patience);
    if (answer) return std::move(*answer);
    given_up = answer.error();
    const bool is_blameless = given_up->killed || given_up->place.source.empty();
    if (is_blameless && ++blameless <= kMostBlameless) {
      end_collector();
      continue;
    }
    if (!bar(*given_up)) break;
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline + deadline * 2 / 3 - (Clock::now() - start));
    if (left <= Milliseconds(0)) break;
    patience = {std::max(left / 2, least), std::max(left, least), left};
  }
  Snapshot empty;
  SourceSet({}, options.sources).read(empty, no_watch());
  return empty;
}

tl::expected<Snapshot, CollectorTrouble> Reader::State::ask_once(Patience patience) {
  if (!collector) {
    auto started = Collector::start(entries(), options.sources);
    if (!started) {
      CollectorTrouble trouble;
      trouble.kind = CollectorTrouble::Kind::died;
      trouble.text = started.error().message();
      return tl::unexpected(std::move(trouble));
    }
    collector.emplace(std::move(*started));
    roster.new_collector();
  }
  Snapshot seen;
  auto answer = collector->ask(forbidden(), patience, seen);
  roster.learn(seen);
  if (answer) given_up.reset();
  return answer;
}

Milliseconds Reader::State::rest_of(const Place& place) {
  const auto now = Clock::now();
  auto rest = std::find_if(rests.begin(), rests.end(), [&place](const Rest& each) { return each.place == place; });
  if (rest == rests.end()) rest = rests.insert(rests.end(), {place, Milliseconds(0), now});
  const bool at_once = now < rest->until + 2 * options.call_deadline + rest->lasted;
  rest->lasted = at_once && rest->lasted.count() > 0 ? std::min(rest->lasted * 2, kLongestRest) : options.retry_after;
  rest->until = now + rest->lasted;
  return rest->lasted;
}

// False when there is nobody to blame.
bool Reader::State::bar(const CollectorTrouble& trouble) {
  const std::optional<pid_t> stuck = end_collector();
  if (trouble.place.source.empty()) return false;
  Barred next{trouble, Clock::now() + rest_of(trouble.place), stuck};
  const auto barred_before = [this](const Place& place) {
    return std::any_of(barred.begin(), barred.end(), [&](const Barred& each) { return each.trouble.place == place; });
  };
  // A source that asks a device although it is barred is left alone as a whole.
  if (barred_before(next.trouble.place)) next.trouble.place = {trouble.entry, -1};
  if (barred_before(next.trouble.place)) return false;
  barred.push_back(std::move(next));
  return true;
}

std::optional<pid_t> Reader::State::end_collector() {
  if (!collector) return std::nullopt;
  const std::optional<pid_t> stuck = collector->end();
  collector.reset();
  if (stuck) left_behind.push_back(*stuck);
  return stuck;
}

void Reader::State::collect_left_behind() {
  left_behind.erase(std::remove_if(left_behind.begin(), left_behind.end(), Worker::is_gone), left_behind.end());
}

void Reader::State::readmit() {
  const auto now = Clock::now();
  collect_left_behind();
  const auto is_stuck = [this](pid_t pid) {
    return std::find(left_behind.begin(), left_behind.end(), pid) != left_behind.end();
  };
  barred.erase(std::remove_if(barred.begin(), barred.end(),
                              [&](Barred& each) {
                                if (each.stuck && !is_stuck(*each.stuck)) each.stuck.reset();
                                return !each.stuck && now >= each.until;
                              }),
               barred.end());
}

std::vector<Place> Reader::State::forbidden() const {
  std::vector<Place> places;
  for (const Barred& each : barred) places.push_back(each.trouble.place);
  return places;
}

Reader::Reader(ReaderOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

Snapshot Reader::read() {
  return state_->read();
}

int Reader::collector_pid() const {
  return state_->collector ? state_->collector->pid() : 0;
}

}  // namespace gpuwright::device
