#include "base/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

namespace gpuwright {
namespace {

constexpr std::chrono::milliseconds kDeathTakes{50};
constexpr int kUncaught = 70;  // EX_SOFTWARE of sysexits.h
constexpr int kFirstOwn = 3;   // after the standard streams

tl::unexpected<Error> system_failure(std::string_view doing) {
  return fail(ErrorCode::unavailable, fmt::format("cannot {}: {}", doing, std::strerror(errno)));
}

void close_all_between(unsigned first, unsigned last) {
  if (first > last || ::syscall(SYS_close_range, first, last, 0) == 0) return;
  rlimit limit{};  // a kernel before 5.9
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  const unsigned most = known ? static_cast<unsigned>(std::min<rlim_t>(limit.rlim_cur, 1 << 20)) : 1024;
  for (unsigned descriptor = first; descriptor < most && descriptor <= last; ++descriptor)
    ::close(static_cast<int>(descriptor));
}

// Leaves the child nothing but the socket, which may move. A pipe that it kept open would keep its reader waiting.
int keep_only(int socket) {
  if (socket < kFirstOwn) socket = ::fcntl(socket, F_DUPFD, kFirstOwn);
  if (const int nothing = ::open("/dev/null", O_RDWR); nothing >= 0)
    for (int stream = 0; stream < kFirstOwn; ++stream) ::dup2(nothing, stream);
  close_all_between(kFirstOwn, static_cast<unsigned>(socket) - 1);
  close_all_between(static_cast<unsigned>(socket) + 1, ~0U);
  return socket;
}

void leave_signals_to(pid_t parent) {
  for (const int number : {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGPIPE, SIGTSTP, SIGWINCH}) std::signal(number, SIG_IGN);
  for (const int number : {SIGCHLD, SIGALRM, SIGUSR1, SIGUSR2}) std::signal(number, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // it ended before it could be watched
}

[[noreturn]] void be_child(const char* name, const std::function<int(int)>& body, int socket, pid_t parent) {
  leave_signals_to(parent);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_NAME, name);
  const int own = keep_only(socket);
  try {
    ::_exit(body(own));
  } catch (...) {
    ::_exit(kUncaught);
  }
}

}  // namespace

Result<Worker> Worker::start(const char* name, const std::function<int(int socket)>& body) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return system_failure("make a socket");
  // A signal between fork and the child's own settings would be handled by the parent's handlers in the child.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) be_child(name, body, ends[1], parent);
  const int number = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(ends[1]);
  if (pid > 0) return Worker(pid, ends[0]);
  ::close(ends[0]);
  errno = number;
  return system_failure("start a process");
}

Worker::Worker(Worker&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), socket_(std::exchange(other.socket_, -1)), end_(other.end_) {}

Worker& Worker::operator=(Worker&& other) noexcept {
  if (this == &other) return *this;
  kill();
  pid_ = std::exchange(other.pid_, -1);
  socket_ = std::exchange(other.socket_, -1);
  end_ = other.end_;
  return *this;
}

Worker::~Worker() {
  kill();
}

std::optional<Worker::End> Worker::ended(std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (pid_ > 0) {
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, WNOHANG);
    if (got == pid_) {
      end_ = WIFSIGNALED(status) ? End{WTERMSIG(status), 0} : End{0, WEXITSTATUS(status)};
      pid_ = -1;
    } else if (got < 0 && errno != EINTR) {
      end_ = End{};  // collected by somebody else: SIGCHLD is ignored in this program
      pid_ = -1;
    } else if (std::chrono::steady_clock::now() >= until) {
      break;
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  return end_;
}

std::optional<pid_t> Worker::kill() {
  close_socket();
  if (pid_ <= 0) return std::nullopt;
  ::kill(pid_, SIGKILL);
  if (ended(kDeathTakes)) return std::nullopt;
  return std::exchange(pid_, -1);
}

bool Worker::is_gone(pid_t pid) {
  const pid_t got = ::waitpid(pid, nullptr, WNOHANG);
  return got == pid || (got < 0 && errno == ECHILD);
}

void Worker::close_socket() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

std::string Worker::End::text() const {
  if (signal == 0) return fmt::format("ended with exit code {}", exit_code);
  const char* description = ::sigdescr_np(signal);
  return fmt::format("ended by signal {} ({})", signal, description == nullptr ? "unknown" : description);
}

Result<std::shared_ptr<void>> shared_memory(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return system_failure("share memory");
  return std::shared_ptr<void>(memory, [bytes](void* pages) { ::munmap(pages, bytes); });
}

}  // namespace gpuwright
