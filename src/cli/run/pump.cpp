#include "cli/run/pump.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

namespace gpuwright::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPiece = 128 << 10;
constexpr int kPipeSize = 1 << 20;                  // what an unprivileged process may ask for
constexpr std::chrono::milliseconds kSilence{300};  // after the job: so long nothing came
constexpr std::chrono::milliseconds kGrace{2000};   // after the job: at most

}  // namespace

Pump::Pump(int from, int to, PseudoTerminal* terminal, Copy copy)
    : from_(from),
      to_(to),
      ended_(::eventfd(0, EFD_CLOEXEC)),
      terminal_(terminal),
      copy_(std::move(copy)),
      piece_(kPiece) {
  if (terminal_ == nullptr) ::fcntl(from_, F_SETPIPE_SZ, kPipeSize);
  thread_ = std::thread([this] { run(); });
}

Pump::~Pump() {
  finish();
  close_from();
  ::close(ended_);
}

void Pump::finish() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t told = ::write(ended_, &one, sizeof one);
  thread_.join();
}

void Pump::run() {
  while (wait_for_more() && pass_on()) continue;
}

// False when the job has ended and nothing more is to be waited for.
bool Pump::wait_for_more() {
  while (true) {
    std::array<pollfd, 2> ready = {pollfd{from_, POLLIN | POLLPRI, 0}, pollfd{ending_ ? -1 : ended_, POLLIN, 0}};
    const int patience = ending_ ? static_cast<int>(kSilence.count()) : -1;
    const int count = ::poll(ready.data(), ready.size(), patience);
    if (count < 0 && errno == EINTR) continue;
    if (ready[1].revents != 0) {
      ending_ = true;
      deadline_ = Clock::now() + kGrace;
      int there = 0;
      if (::ioctl(from_, FIONREAD, &there) == 0) owed_ = there;
    }
    if (ready[0].revents != 0) return !ending_ || owed_ > 0 || Clock::now() < deadline_;
    if (ending_ && ready[1].revents == 0) return false;
  }
}

// False at the end.
bool Pump::pass_on() {
  const ssize_t got = ::read(from_, piece_.data(), piece_.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return close_from(), false;  // a terminal that nobody has open any more says EIO
  std::string_view bytes(piece_.data(), static_cast<std::size_t>(got));
  if (terminal_ != nullptr) {
    // Packet mode: a byte that says what follows.
    const char kind = bytes.front();
    bytes.remove_prefix(1);
    if ((kind & TIOCPKT_IOCTL) != 0) terminal_->follow_modes();
    if (kind != TIOCPKT_DATA) return true;
  }
  write_out(bytes);
  copy_(bytes);
  owed_ -= got;
  if (!gone_) return true;
  // As it would be without us: the job learns it from its next write.
  close_from();
  return false;
}

void Pump::write_out(std::string_view bytes) {
  while (!bytes.empty() && write_error_ == 0) {
    const ssize_t count = ::write(to_, bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EAGAIN) {
      pollfd room{to_, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (count < 0 && errno == EPIPE) {
      gone_ = true;
      return;
    } else if (count < 0 && errno != EINTR) {
      write_error_ = errno;  // a full disk is no reason to end the job: it goes on, and is heard
    }
  }
}

int Pump::release() {
  if (from_ < 0 || terminal_ == nullptr) return std::exchange(from_, -1);
  from_ = -1;
  return ::fcntl(terminal_->master(), F_DUPFD_CLOEXEC, 3);
}

void Pump::close_from() {
  if (from_ >= 0 && terminal_ == nullptr) ::close(from_);
  from_ = -1;
}

}  // namespace gpuwright::cli
