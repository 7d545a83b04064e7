#include "base/screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/terminal.h"
#include "base/text.h"

namespace gpuwright {
namespace {

// Alternate screen, no cursor, no automatic line breaks; and back.
constexpr std::string_view kEnter = "\033[?1049h\033[?25l\033[?7l\033[H\033[2J";
constexpr std::string_view kLeave = "\033[0m\033[?7h\033[?25h\033[?1049l";

constexpr std::array kFaults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

termios former_mode;
bool mode_changed = false;
pid_t owner = 0;

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written > 0)
      text.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR && errno != EAGAIN)
      return;
  }
}

void give_back() {
  put(kLeave);
  if (mode_changed) tcsetattr(STDIN_FILENO, TCSANOW, &former_mode);
  mode_changed = false;
}

// Only functions that are allowed in a handler; SA_RESETHAND lets the fault strike again, then for good.
void on_fault(int signal) {
  if (getpid() == owner) give_back();
  raise(signal);
}

void catch_faults(bool on) {
  struct sigaction action {};
  if (on)
    action.sa_handler = on_fault;
  else
    action.sa_handler = SIG_DFL;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  sigemptyset(&action.sa_mask);
  for (const int fault : kFaults) sigaction(fault, &action, nullptr);
}

// Keys come one by one and unseen; Ctrl-C still is a signal, Ctrl-Z is not, as it would leave the screen as it is.
bool read_keys() {
  if (!is_terminal(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &former_mode) != 0) return false;
  termios mode = former_mode;
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  mode.c_cc[VSUSP] = _POSIX_VDISABLE;
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  mode_changed = tcsetattr(STDIN_FILENO, TCSANOW, &mode) == 0;
  return mode_changed;
}

// Columns that the text takes, its colours (ESC [ ... m) left out.
int visible_width(std::string_view line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] != '\033') {
      plain += line[at];
      continue;
    }
    at = line.find('m', at);
    if (at == std::string_view::npos) break;
  }
  return display_width(plain);
}

}  // namespace

bool Screen::possible() {
  if (!is_terminal(STDOUT_FILENO)) return false;
  const char* value = std::getenv("TERM");
  const std::string term = value ? value : "";
  constexpr std::string_view kKnown[] = {
      "xterm",  "screen",    "tmux",    "rxvt",  "linux",   "vt1",     "vt2",    "vt3",  "vt4",    "vt5",
      "ansi",   "alacritty", "kitty",   "foot",  "wezterm", "konsole", "gnome",  "st",   "eterm",  "putty",
      "cygwin", "ghostty",   "contour", "iterm", "mlterm",  "vte",     "nsterm", "tmux", "mintty", "terminator"};
  return std::any_of(std::begin(kKnown), std::end(kKnown),
                     [&](std::string_view known) { return starts_with_ignoring_case(term, known); });
}

Screen::Screen() {
  owner = getpid();
  catch_faults(true);
  reads_keys_ = read_keys();
  put(kEnter);
}

Screen::~Screen() {
  give_back();
  catch_faults(false);
}

ScreenSize Screen::size() const {
  winsize told{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &told) != 0 || told.ws_col == 0 || told.ws_row == 0) return {};
  return {told.ws_col, told.ws_row};
}

void Screen::draw(std::string_view text) {
  const auto [columns, lines] = size();
  std::string frame = "\033[H";
  int drawn = 0;
  while (!text.empty() && drawn < lines) {
    const std::size_t end = text.find('\n');
    if (drawn > 0) frame += "\r\n";
    const std::string_view line = text.substr(0, end);
    frame.append(line).append("\033[0m");
    // Behind a full line the cursor still stands on its last character, which would be erased.
    if (visible_width(line) < columns) frame += "\033[K";
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++drawn;
  }
  put(frame + "\033[0J");
}

ScreenEvent Screen::wait(std::chrono::milliseconds time) {
  std::array<pollfd, 2> ready = {pollfd{signals_.descriptor(), POLLIN, 0}, pollfd{STDIN_FILENO, POLLIN, 0}};
  const int count = poll(ready.data(), reads_keys_ ? 2 : 1, static_cast<int>(std::max<std::int64_t>(time.count(), 0)));
  ScreenEvent event;
  if (count <= 0) return event;
  while (const int signal = signals_.next()) {
    event.resized = event.resized || signal == SIGWINCH;
    if (asks_to_end(signal)) event.signal = signal;
  }
  if ((ready[1].revents & (POLLIN | POLLHUP)) != 0) {
    const ssize_t got = read(STDIN_FILENO, &event.key, 1);
    if (got <= 0) reads_keys_ = false;
  }
  return event;
}

}  // namespace gpuwright
