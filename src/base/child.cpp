#include "base/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/text.h"

namespace gpuwright {
namespace {

constexpr std::array kHeld = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD};

// As they were when the program began: what children begin with.
sigset_t former_mask;
struct sigaction former_child_action;
bool holding = false;

std::array<int, 2> close_on_exec_pipe() {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
  return ends;
}

[[noreturn]] void become(char* const* words, const ChildOutputs& outputs, int failure) {
  if (outputs.out >= 0) ::dup2(outputs.out, STDOUT_FILENO);
  if (outputs.err >= 0) ::dup2(outputs.err, STDERR_FILENO);
  if (holding) {
    ::sigaction(SIGCHLD, &former_child_action, nullptr);
    ::sigprocmask(SIG_SETMASK, &former_mask, nullptr);
  }
  ::execvp(words[0], words);
  const int number = errno;
  [[maybe_unused]] const ssize_t told = ::write(failure, &number, sizeof number);
  ::_exit(127);
}

tl::unexpected<Error> not_executed(const std::string& program, int number) {
  const bool there = number == ENOENT && program.find('/') != std::string::npos && path_exists(program);
  if (there)
    return fail(ErrorCode::bad_input,
                fmt::format("{}: the interpreter that its first line names is not there", program));
  if (number == ENOENT || number == ENOTDIR)
    return fail(ErrorCode::not_found, fmt::format("there is no program '{}'", program),
                program.find('/') == std::string::npos ? "it is in no folder of PATH" : "");
  return fail(ErrorCode::bad_input, fmt::format("{} cannot be executed: {}", program, std::strerror(number)),
              number == EACCES ? "is it a program, and may you run it? (chmod +x)" : "");
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

HeldSignals::HeldSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int number : kHeld) sigaddset(&held, number);
  sigset_t blocked = held;
  sigaddset(&blocked, SIGPIPE);  // a write to a reader that went away is an error there, not our end
  ::pthread_sigmask(SIG_BLOCK, &blocked, &former_mask);
  // Who ignores SIGCHLD never learns how a child ended.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &action, &former_child_action);
  descriptor_ = ::signalfd(-1, &held, SFD_CLOEXEC);
  holding = true;
}

HeldSignals::~HeldSignals() {
  if (descriptor_ >= 0) ::close(descriptor_);
  // What came too late for the child is not for us.
  sigset_t held;
  sigemptyset(&held);
  for (const int number : kHeld) sigaddset(&held, number);
  sigaddset(&held, SIGPIPE);
  const timespec at_once{};
  while (::sigtimedwait(&held, nullptr, &at_once) > 0) continue;
  ::sigaction(SIGCHLD, &former_child_action, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &former_mask, nullptr);
  holding = false;
}

HeldSignals::Arrival HeldSignals::wait() const {
  signalfd_siginfo info{};
  while (::read(descriptor_, &info, sizeof info) != static_cast<ssize_t>(sizeof info))
    if (errno != EINTR) return {SIGCHLD, true};
  return {static_cast<int>(info.ssi_signo), info.ssi_code > 0};
}

Result<pid_t> start_child(const std::vector<std::string>& words, const ChildOutputs& outputs,
                          const std::string& variable) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const std::size_t equals = variable.find('=');
  ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  const auto failure = close_on_exec_pipe();
  if (failure[0] < 0) return fail(ErrorCode::unavailable, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const pid_t child = ::fork();
  if (child == 0) become(pointers.data(), outputs, failure[1]);
  const int fork_failure = errno;
  ::close(failure[1]);
  int number = 0;
  ssize_t got = 0;
  while (child > 0 && (got = ::read(failure[0], &number, sizeof number)) < 0 && errno == EINTR) continue;
  ::close(failure[0]);
  if (child < 0)
    return fail(ErrorCode::unavailable, fmt::format("cannot start a process: {}", std::strerror(fork_failure)));
  if (got != static_cast<ssize_t>(sizeof number)) return child;
  ::waitpid(child, nullptr, 0);
  return not_executed(words.front(), number);
}

std::optional<ChildEnd> child_end(pid_t child) {
  int status = 0;
  rusage usage{};
  if (::wait4(child, &status, WNOHANG, &usage) != child) return std::nullopt;
  ChildEnd end;
  if (WIFSIGNALED(status))
    end.signal = WTERMSIG(status);
  else
    end.exit_code = WEXITSTATUS(status);
  end.user_seconds = seconds_of(usage.ru_utime);
  end.system_seconds = seconds_of(usage.ru_stime);
  end.resident_peak_bytes = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
  return end;
}

bool is_stopped(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

namespace {

[[noreturn]] void drain(std::vector<pollfd> waiting) {
  static std::array<char, 1 << 16> thrown_away;
  while (!waiting.empty()) {
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) break;
    for (pollfd& one : waiting) {
      if (one.revents == 0) continue;
      const ssize_t got = ::read(one.fd, thrown_away.data(), thrown_away.size());
      if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) one.fd = -1;
    }
    std::erase_if(waiting, [](const pollfd& one) { return one.fd < 0; });
  }
  ::_exit(0);
}

}  // namespace

void drain_elsewhere(const std::vector<int>& descriptors) {
  if (descriptors.empty()) return;
  std::vector<pollfd> waiting;
  for (const int descriptor : descriptors) waiting.push_back({descriptor, POLLIN, 0});
  if (::fork() == 0) {
    ::setsid();
    if (holding) ::sigprocmask(SIG_SETMASK, &former_mask, nullptr);
    ::prctl(PR_SET_NAME, "gpuwright-drain");
    if (::chdir("/") == 0)
      if (const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC); nothing >= 0)
        for (int stream = 0; stream <= STDERR_FILENO; ++stream) ::dup2(nothing, stream);
    // Any other descriptor that stayed open here would keep its reader waiting.
    const auto stays = [&](int descriptor) {
      return std::find(descriptors.begin(), descriptors.end(), descriptor) != descriptors.end();
    };
    const int most = static_cast<int>(std::min<long>(::sysconf(_SC_OPEN_MAX), 1 << 16));
    for (int descriptor = STDERR_FILENO + 1; descriptor < most; ++descriptor)
      if (!stays(descriptor)) ::close(descriptor);
    drain(std::move(waiting));
  }
  for (const int descriptor : descriptors) ::close(descriptor);
}

}  // namespace gpuwright
