#include "base/pseudo_terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace gpuwright {
namespace {

tl::unexpected<Error> failure(std::string_view what) {
  return fail(ErrorCode::unavailable, fmt::format("cannot make a pseudo-terminal: {}: {}", what, std::strerror(errno)));
}

// From the background a change of modes stops who asks for it, unless the signal is blocked.
void set_modes(int descriptor, const termios& modes) {
  sigset_t output, former;
  sigemptyset(&output);
  sigaddset(&output, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &output, &former);
  ::tcsetattr(descriptor, TCSADRAIN, &modes);
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

// What differs between two modes, done to a third.
tcflag_t with_changes(tcflag_t onto, tcflag_t before, tcflag_t after) {
  return onto ^ (before ^ after);
}

}  // namespace

Result<PseudoTerminal> PseudoTerminal::open(int real) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return failure("posix_openpt");
  PseudoTerminal terminal(real, master, -1);
  std::array<char, 64> name{};
  if (::grantpt(master) != 0 || ::unlockpt(master) != 0 || ::ptsname_r(master, name.data(), name.size()) != 0)
    return failure("unlockpt");
  terminal.slave_ = ::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal.slave_ < 0) return failure(name.data());
  if (::tcgetattr(real, &terminal.former_) != 0) return failure("tcgetattr");
  termios modes = terminal.former_;
  modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  modes.c_lflag |= static_cast<tcflag_t>(EXTPROC);
  const int on = 1;
  if (::tcsetattr(terminal.slave_, TCSANOW, &modes) != 0 || ::ioctl(master, TIOCPKT, &on) != 0)
    return failure("tcsetattr");
  ::tcgetattr(terminal.slave_, &terminal.first_);
  terminal.follow_size();
  return terminal;
}

PseudoTerminal::PseudoTerminal(PseudoTerminal&& other) noexcept
    : real_(other.real_),
      master_(std::exchange(other.master_, -1)),
      slave_(std::exchange(other.slave_, -1)),
      former_(other.former_),
      first_(other.first_),
      changed_(std::exchange(other.changed_, false)) {}

PseudoTerminal::~PseudoTerminal() {
  give_back();
  close_slave();
  if (master_ >= 0) ::close(master_);
}

void PseudoTerminal::close_slave() {
  if (slave_ >= 0) ::close(std::exchange(slave_, -1));
}

void PseudoTerminal::follow_size() const {
  winsize size{};
  if (::ioctl(real_, TIOCGWINSZ, &size) == 0) ::ioctl(master_, TIOCSWINSZ, &size);
}

void PseudoTerminal::follow_modes() {
  termios now{};
  if (::tcgetattr(master_, &now) != 0 || ::tcgetpgrp(real_) != ::getpgrp()) return;
  termios wanted = former_;
  wanted.c_iflag = with_changes(former_.c_iflag, first_.c_iflag, now.c_iflag);
  wanted.c_oflag = with_changes(former_.c_oflag, first_.c_oflag, now.c_oflag);
  wanted.c_lflag = with_changes(former_.c_lflag, first_.c_lflag, now.c_lflag);
  for (int i = 0; i < NCCS; ++i)
    if (now.c_cc[i] != first_.c_cc[i]) wanted.c_cc[i] = now.c_cc[i];
  set_modes(real_, wanted);
  changed_ = true;
}

void PseudoTerminal::give_back() {
  if (std::exchange(changed_, false) && ::tcgetpgrp(real_) == ::getpgrp()) set_modes(real_, former_);
}

}  // namespace gpuwright
