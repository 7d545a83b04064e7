// Test help: tests/hub_server.py, running as long as the object lives.
#pragma once

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace gpuwright::testing {

class LocalServer {
 public:
  explicit LocalServer(const std::string& folder = {}) {
    int to_child[2];
    int from_child[2];
    if (::pipe(to_child) != 0 || ::pipe(from_child) != 0) return;
    const std::string script = GPUWRIGHT_SOURCE_DIR "/tests/hub_server.py";
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(to_child[0], 0);
      ::dup2(from_child[1], 1);
      for (const int descriptor : {to_child[0], to_child[1], from_child[0], from_child[1]}) ::close(descriptor);
      ::execlp("python3", "python3", script.c_str(), folder.empty() ? nullptr : folder.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(to_child[0]);
    ::close(from_child[1]);
    stdin_ = to_child[1];
    FILE* lines = ::fdopen(from_child[0], "r");
    if (std::fscanf(lines, "%d", &port_) != 1) port_ = 0;
    std::fclose(lines);
  }
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;
  ~LocalServer() {
    if (stdin_ >= 0) ::close(stdin_);
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
  }

  bool running() const { return port_ > 0; }  // false where there is no python3
  std::string url(const std::string& path = {}) const { return "http://127.0.0.1:" + std::to_string(port_) + path; }

 private:
  pid_t child_ = -1;
  int stdin_ = -1;
  int port_ = 0;
};

}  // namespace gpuwright::testing
