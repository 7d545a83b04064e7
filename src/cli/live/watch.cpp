#include "cli/live/watch.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <sstream>

#include "base/screen.h"
#include "base/signals.h"
#include "cli/live/background.h"
#include "cli/style.h"
#include "cli/table.h"

namespace gpuwright::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A read that takes longer than this is told on the screen.
constexpr milliseconds kSlow{1200};

milliseconds in_milliseconds(double seconds) {
  return milliseconds(static_cast<std::int64_t>(std::llround(seconds * 1000)));
}

milliseconds until(Clock::time_point time) {
  return std::max(std::chrono::ceil<milliseconds>(time - Clock::now()), milliseconds(0));
}

class ScreenLoop {
 public:
  using Render = std::function<void(const device::Snapshot&, const ScreenView&, const Console&)>;

  ScreenLoop(std::unique_ptr<Feed> feed, const Pace& pace, const Console& console, const Render& render)
      : pace_(pace), console_(console), render_(render), feed_(std::move(feed), [this] { screen_.wake(); }) {}

  Result<int> run() {
    request();
    while (true) {
      const ScreenEvent event = screen_.wait(time_to_wait());
      if (event.signal != 0) return 128 + event.signal;
      if (event.key == 'q' || event.key == 'Q') return kDone;
      bool changed = event.resized || take_key(event.key);
      if (auto result = feed_.take()) {
        const bool done = GW_TRY(take(std::move(*result)));
        if (done && pace_.count) return kDone;
        changed = true;
      }
      const bool slow = feed_.busy() && Clock::now() - asked_ > kSlow;
      if (slow != told_slow_ || changed) draw(slow);
      told_slow_ = slow;
      if (!ended_ && !paused_ && !feed_.busy() && Clock::now() >= due_) request();
    }
  }

 private:
  void request() {
    asked_ = Clock::now();
    due_ = std::max(due_ + in_milliseconds(pace_.seconds), asked_);
    feed_.request();
  }

  milliseconds time_to_wait() const {
    if (feed_.busy()) return told_slow_ ? milliseconds(1000) : std::max(until(asked_ + kSlow), milliseconds(1));
    if (ended_ || paused_) return milliseconds(60'000);
    return until(due_);
  }

  bool take_key(char key) {
    if (key == ' ') paused_ = !paused_;
    if (key == 'p') processes_ = !processes_;
    return key == ' ' || key == 'p';
  }

  // Whether that was the last one.
  Result<bool> take(Result<std::optional<device::Snapshot>> result) {
    auto snapshot = GW_TRY(std::move(result));
    if (!snapshot) {
      ended_ = true;
      return true;
    }
    last_ = std::move(snapshot);
    if (const auto seconds = feed_.seconds_to_next()) due_ = asked_ + in_milliseconds(std::min(*seconds, 10.0));
    ended_ = pace_.count && ++shown_ >= *pace_.count;
    return ended_;
  }

  void draw(bool slow) {
    if (!last_) return;
    const ScreenSize size = screen_.size();
    std::ostringstream text;
    Console console{text,  console_.err,     console_.color,   false, size.columns, false,
                    false, console_.unicode, console_.language};
    std::string state = feed_.note();
    if (slow) state += (state.empty() ? "" : ", ") + std::string("a driver does not answer");
    if (paused_) state += (state.empty() ? "" : ", ") + std::string("paused");
    if (ended_) state += (state.empty() ? "" : ", ") + std::string("the end");
    render_(*last_, {size.lines - 1, processes_, state}, console);
    std::string body = text.str();
    const auto lines = std::count(body.begin(), body.end(), '\n');
    body.append(static_cast<std::size_t>(std::max<std::ptrdiff_t>(size.lines - 1 - lines, 0)), '\n');
    const std::string keys = fmt::format("q quit  space pause  p processes   every {:g} s", pace_.seconds);
    screen_.draw(first_lines(body, size.lines - 1) + paint(console, Tone::dim, keys));
  }

  static std::string first_lines(const std::string& text, int lines) {
    std::size_t at = 0;
    for (int i = 0; i < lines && at != std::string::npos; ++i) {
      at = text.find('\n', at);
      if (at != std::string::npos) ++at;
    }
    return text.substr(0, at);
  }

  Pace pace_;
  const Console& console_;
  const Render& render_;
  Screen screen_;
  Background feed_;  // after the screen, which it wakes
  std::optional<device::Snapshot> last_;
  Clock::time_point asked_ = Clock::now(), due_ = Clock::now();
  std::int64_t shown_ = 0;
  bool paused_ = false, processes_ = true, ended_ = false, told_slow_ = false;
};

}  // namespace

Result<int> show_each(Feed& feed, const Pace& pace,
                      const std::function<void(const device::Snapshot&, std::int64_t)>& show) {
  Signals signals;
  auto due = Clock::now();
  for (std::int64_t number = 0; !pace.count || number < *pace.count; ++number) {
    if (number > 0) {
      due = std::max(due + in_milliseconds(feed.seconds_to_next().value_or(pace.seconds)), Clock::now());
      while (Clock::now() < due)
        if (const int signal = signals.wait(until(due)); asks_to_end(signal)) return 128 + signal;
    }
    const auto snapshot = GW_TRY(feed.next());
    if (!snapshot) return kDone;
    show(*snapshot, number);
    if (const int signal = signals.next(); asks_to_end(signal)) return 128 + signal;
  }
  return kDone;
}

Result<int> show_on_screen(std::unique_ptr<Feed> feed, const Pace& pace, const Console& console,
                           const ScreenLoop::Render& render) {
  return ScreenLoop(std::move(feed), pace, console, render).run();
}

}  // namespace gpuwright::cli
