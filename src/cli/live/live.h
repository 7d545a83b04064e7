// What the commands about live GPUs share: their options, and where their snapshots come from: this machine, a
// simulated one (--simulate), or a recording (--replay).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "device/reader.h"
#include "device/snapshot.h"

namespace gpuwright::cli {

enum class Replay { no, yes };
// --simulate, --replay, --at, --root, --gpu, --wake, in a group of their own.
std::vector<Option> live_options(Replay replay);

// Where snapshots come from, one after the other. Not thread-safe, but may be moved to another thread.
class Feed {
 public:
  virtual ~Feed() = default;
  // The next one; nothing when a recording has ended. Takes as long as the drivers (see device/reader.h).
  virtual Result<std::optional<device::Snapshot>> next() = 0;
  // How long after the last one the next should come; nothing: as the caller likes.
  virtual std::optional<double> seconds_to_next() const { return std::nullopt; }
  virtual std::string note() const { return {}; }
  virtual bool is_recording() const { return false; }
  virtual bool tells_time() const { return true; }  // a simulation whose clock stands has no time of day
};
// Of a recording: from its start or from --at, if it `repeats`; else what --at says, or its last snapshot.
Result<std::unique_ptr<Feed>> open_feed(const Arguments& arguments, const device::Wants& wants, bool repeats = false);
// The sources that the words ask for, when they are no recording.
Result<device::SourceOptions> source_options(const Arguments& arguments, const device::Wants& wants);
// For commands that cannot do without a snapshot.
Result<device::Snapshot> next_snapshot(Feed& feed);

// No GPU answers: nothing was found, or what was found has no driver, or the driver's library does not match.
// Says on err what was looked for and what to do. Gives kMissing, else kDone.
int report_missing(const device::Snapshot& snapshot, const Console& console);
// Before answers that repeat: as report_missing where there is no GPU at all.
Result<int> check_beforehand(Feed& feed, const Console& console);
// As report_missing, silently.
bool is_missing(const device::Snapshot& snapshot);

Result<double> seconds_of(const Arguments& arguments, std::string_view option, double otherwise);
// Of options whose value may be left out: --watch [SECONDS].
bool is_seconds(std::string_view word);
// --watch [SECONDS] of the commands that can be redrawn.
Option watch_option();

}  // namespace gpuwright::cli
