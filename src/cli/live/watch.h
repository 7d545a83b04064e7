// Showing snapshots again and again: on a screen that is redrawn, or line by line.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "cli/live/live.h"

namespace gpuwright::cli {

struct Pace {
  double seconds = 1;
  std::optional<std::int64_t> count;  // how many snapshots; nothing: until it is ended
};

// Calls `show` with each snapshot, `pace` apart, until the count is reached, a recording ends, or a signal ends the
// program. Gives kDone, or 128 + the signal.
Result<int> show_each(Feed& feed, const Pace& pace,
                      const std::function<void(const device::Snapshot& snapshot, std::int64_t number)>& show);

// Redraws the terminal with what `render` gives (text for so many lines, on a console as wide as the screen). Keys:
// q ends, space pauses, p hides the processes. Never waits for a driver.
struct ScreenView {
  int lines = 24;
  bool processes = true;
  std::string note;
};
Result<int> show_on_screen(std::unique_ptr<Feed> feed, const Pace& pace, const Console& console,
                           const std::function<void(const device::Snapshot& snapshot, const ScreenView& view,
                                                    const Console& console)>& render);

}  // namespace gpuwright::cli
