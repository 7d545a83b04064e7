// Who is who among the GPUs of one reader: rows keep their place and their identity, whatever becomes of the device or
// of the process that asks it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "device/collector.h"
#include "device/snapshot.h"

namespace gpuwright::device {

// As the source of a trouble: none of the sources could be read.
inline constexpr std::string_view kEverySource = "*";

// Not thread-safe.
class Roster {
 public:
  // Rows of an answer that was not finished: only who they are is kept.
  void learn(const Snapshot& seen);
  // Another collector answers from now on: what it has seen of Xids adds to what the one before had.
  void new_collector();

  // Gives every GPU its index and its place; adds the rows that are missing, with the state that `troubles` explain;
  // takes everything but the identity from a device in trouble; points processes to the rows.
  void settle(Snapshot& snapshot, const std::vector<CollectorTrouble>& troubles);

 private:
  struct Known {
    Gpu gpu;                            // identity
    std::vector<XidEvent> xids_before;  // of the collectors before this one
    std::vector<XidEvent> xids;         // of this one
  };
  std::size_t index_of(const Gpu& gpu, std::vector<bool>& taken);
  void remember(Known& known, const Gpu& gpu);
  void add_silent(const std::vector<CollectorTrouble>& troubles);
  // `told`: the row that a source gave, or null.
  Gpu row_of(std::size_t index, Gpu* told, const Snapshot& snapshot, const std::vector<CollectorTrouble>& troubles);

  std::vector<Known> known_;
};

}  // namespace gpuwright::device
