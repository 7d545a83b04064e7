// A child process that runs a function of this program, for work that may hang or crash: what it does can be given up
// by killing it. It is forked without exec, shares the pages of its parent, and talks over a socket.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace gpuwright {

// Not thread-safe. The child ends with its parent, ignores what is typed at the terminal and SIGTERM (the parent
// decides), and has no descriptor of the parent open but its own end of the socket: its standard streams lead to
// /dev/null.
class Worker {
 public:
  // The body runs in the child; what it returns is the exit code. `name` is what ps shows, at most 15 characters.
  // `unavailable` when the system gives no process.
  static Result<Worker> start(const char* name, const std::function<int(int socket)>& body);
  Worker(Worker&& other) noexcept;
  Worker& operator=(Worker&& other) noexcept;
  ~Worker();  // kill()s

  int socket() const { return socket_; }
  pid_t pid() const { return pid_; }

  struct End {
    int signal = 0;  // 0: it exited by itself, with exit_code
    int exit_code = 0;
    std::string text() const;  // "ended by signal 11 (Segmentation fault)"
  };
  // How the child ended, waiting so long for it; nothing while it runs.
  std::optional<End> ended(std::chrono::milliseconds patience = {});

  // Kills the child. One that is stuck in the kernel (state D) takes no signal until the kernel lets it go: it is left
  // behind, and its pid is given, to be asked after with is_gone().
  std::optional<pid_t> kill();
  // Collects a child that was left behind, once it has ended.
  static bool is_gone(pid_t pid);

 private:
  Worker(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  void close_socket();

  pid_t pid_ = -1;  // -1: none, or collected
  int socket_ = -1;
  std::optional<End> end_;
};

// Memory that a process and the children that it forks later see alike; all bits zero at first.
template <class T>
class Shared {
 public:
  T* operator->() const { return static_cast<T*>(memory_.get()); }
  T& operator*() const { return *static_cast<T*>(memory_.get()); }
  static Result<Shared> make();

 private:
  explicit Shared(std::shared_ptr<void> memory) : memory_(std::move(memory)) {}
  std::shared_ptr<void> memory_;
};
Result<std::shared_ptr<void>> shared_memory(std::size_t bytes);

template <class T>
Result<Shared<T>> Shared<T>::make() {
  return Shared(GW_TRY(shared_memory(sizeof(T))));
}

}  // namespace gpuwright
