#include "base/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace gpuwright {
namespace {

constexpr std::array kCaught = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};

// Handlers know nothing but these: a byte for each signal goes through the pipe, 0 for wake().
int pipe_ends[2] = {-1, -1};
pid_t owner = 0;
std::array<struct sigaction, kCaught.size()> former;

void send(std::uint8_t number) {
  const int saved = errno;
  // A full pipe has enough to wake whoever reads it.
  [[maybe_unused]] const ssize_t written = write(pipe_ends[1], &number, 1);
  errno = saved;
}

void on_signal(int signal) {
  // A forked child that has not reset its handlers must not speak through its parent's pipe.
  if (getpid() == owner) return send(static_cast<std::uint8_t>(signal));
  if (signal != SIGWINCH) _exit(128 + signal);
}

}  // namespace

Signals::Signals() {
  owner = getpid();
  if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) pipe_ends[0] = pipe_ends[1] = -1;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kCaught.size(); ++i) {
    sigaction(kCaught[i], nullptr, &former[i]);
    if (former[i].sa_handler != SIG_IGN || kCaught[i] == SIGWINCH) sigaction(kCaught[i], &action, nullptr);
  }
}

Signals::~Signals() {
  for (std::size_t i = 0; i < kCaught.size(); ++i) sigaction(kCaught[i], &former[i], nullptr);
  for (int& end : pipe_ends) {
    if (end >= 0) close(end);
    end = -1;
  }
}

int Signals::descriptor() const {
  return pipe_ends[0];
}

int Signals::next() {
  std::uint8_t number = 0;
  while (read(pipe_ends[0], &number, 1) == 1)
    if (number != 0) return number;
  return 0;
}

int Signals::wait(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd ready{pipe_ends[0], POLLIN, 0};
    const int count = poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (count > 0 || left.count() <= 0) return next();
  }
}

void Signals::wake() {
  send(0);
}

bool asks_to_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

}  // namespace gpuwright
