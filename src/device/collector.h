// The process that asks the drivers. A driver that hangs or a vendor library that crashes takes only this child with
// it: its parent sees in a shared page which call it was in, kills it, and starts another one that leaves the device
// alone.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/worker.h"
#include "device/snapshot.h"
#include "device/source.h"

namespace gpuwright::device {

// A source that is made when it is first read, in the process that reads it.
struct SourceEntry {
  std::string name;
  std::function<std::unique_ptr<Source>()> make;
};
// All that there are, in the order in which they are read.
std::vector<SourceEntry> all_sources(const SourceOptions& options);

// A device of a source, or (-1) the source as a whole.
struct Place {
  std::string source;
  int device = -1;
  bool operator==(const Place&) const = default;
};

// The sources one after the other, in this process.
class SourceSet {
 public:
  SourceSet(std::vector<SourceEntry> entries, SourceOptions options);
  // Fills in an empty snapshot. One that a source left in the middle (an exception) keeps what it had.
  void read(Snapshot& snapshot, CallWatch& watch);

 private:
  struct Made {
    SourceEntry entry;
    std::unique_ptr<Source> source;
  };
  void read_one(Made& made, Snapshot& snapshot, CallWatch& watch);

  std::vector<Made> sources_;
  SourceOptions options_;
};

// Why a collector gave no answer.
struct CollectorTrouble {
  enum class Kind : std::uint8_t { hung, died };
  Kind kind = Kind::hung;
  Place place;          // what it asked; no source: none
  std::string entry;    // the SourceEntry that ran
  std::string call;     // "nvmlDeviceGetMemoryInfo"; may be empty
  std::string text;     // "nvmlDeviceGetMemoryInfo did not answer in 1500 ms"
  bool killed = false;  // died of SIGKILL, which is the system's hand and tells nothing of the call
};

// How long the collector may be silent in one call.
struct Patience {
  std::chrono::milliseconds device, library;
  std::chrono::milliseconds all{2000};  // its calls together
};

// Not thread-safe.
class Collector {
 public:
  static Result<Collector> start(std::vector<SourceEntry> entries, const SourceOptions& options);

  // The state now, without what is forbidden. Rows that were told of before the trouble are in `seen`, with little more
  // than their identity.
  tl::expected<Snapshot, CollectorTrouble> ask(const std::vector<Place>& forbidden, Patience patience, Snapshot& seen);
  // Ends the process; the pid of one that is stuck in the kernel.
  std::optional<pid_t> end() { return worker_.kill(); }
  pid_t pid() const { return worker_.pid(); }

 private:
  struct Note;  // in the shared page: the call that is being made
  class Watch;
  Collector(Worker worker, Shared<Note> note) : worker_(std::move(worker)), note_(std::move(note)) {}
  static int serve(int socket, SourceSet& sources, Note& note);

  struct Message {
    bool is_answer = false;
    std::optional<Snapshot> snapshot;  // nothing: it is damaged
  };
  bool receive_some();
  std::optional<Message> next_message();
  CollectorTrouble trouble(CollectorTrouble::Kind kind, std::string_view what) const;
  CollectorTrouble hung(std::chrono::milliseconds waited) const;
  CollectorTrouble died();

  Worker worker_;
  Shared<Note> note_;
  std::string received_;
};

}  // namespace gpuwright::device
