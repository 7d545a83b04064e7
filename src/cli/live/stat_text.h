// `stat` for people: one line a GPU, what deserves attention, the processes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "device/snapshot.h"

namespace gpuwright::cli {

struct StatView {
  std::optional<int> height;  // lines there are; processes that do not fit are counted instead. Nothing: all are shown
  bool processes = true;
  std::string note = {};  // beside the time: "recorded in run.gwr, 12s after its start"
  bool tells_time = true;
};

void print_stat(const device::Snapshot& snapshot, const StatView& view, const Console& console);

// What deserves attention: states that are not ok, errors, held-down clocks, values that could not be read.
struct Remark {
  bool bad = false;  // else a warning
  std::string text;
  std::string row = {};  // the row of the GPU says the same, unless it is cut there
};
std::vector<Remark> remarks_on(const device::Snapshot& snapshot);

// "SIMULATED (8xh100): nothing here is of this machine", or empty.
std::string simulated_banner(const device::Snapshot& snapshot);
void print_banner(const device::Snapshot& snapshot, const Console& console);

// The table of processes, with a row a GPU for memory that no visible process holds. At most `limit` rows.
void print_processes(const device::Snapshot& snapshot, std::optional<int> limit, const Console& console);

}  // namespace gpuwright::cli
