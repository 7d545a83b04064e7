#include "base/worker.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>

namespace gpuwright {
namespace {

using std::chrono::milliseconds;

TEST(Worker, TalksOverItsSocket) {
  auto worker = Worker::start("test", [](int socket) {
    char letter = 0;
    while (::read(socket, &letter, 1) == 1)
      if (++letter; ::write(socket, &letter, 1) != 1) return 1;
    return 0;  // the parent has gone
  });
  ASSERT_TRUE(worker) << worker.error().message();
  char letter = 'a';
  ASSERT_EQ(::write(worker->socket(), &letter, 1), 1);
  ASSERT_EQ(::read(worker->socket(), &letter, 1), 1);
  EXPECT_EQ(letter, 'b');
  EXPECT_FALSE(worker->ended());
  ::shutdown(worker->socket(), SHUT_WR);
  const auto end = worker->ended(milliseconds(5000));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->text(), "ended with exit code 0");
}

TEST(Worker, TellsHowItEnded) {
  auto exits = Worker::start("test", [](int) { return 7; });
  EXPECT_EQ(exits->ended(milliseconds(5000))->text(), "ended with exit code 7");
  auto throws = Worker::start("test", [](int) -> int { throw std::runtime_error("a bug"); });
  EXPECT_EQ(throws->ended(milliseconds(5000))->exit_code, 70);
  auto dies = Worker::start("test", [](int) { return std::raise(SIGALRM); });
  EXPECT_EQ(dies->ended(milliseconds(5000))->text(), "ended by signal 14 (Alarm clock)");
}

TEST(Worker, IsKilledAndCollected) {
  auto worker = Worker::start("test", [](int) {
    while (true) ::pause();
    return 0;
  });
  const pid_t pid = worker->pid();
  EXPECT_EQ(worker->kill(), std::nullopt);
  EXPECT_EQ(::kill(pid, 0), -1);  // not even a zombie
  EXPECT_EQ(errno, ESRCH);
  EXPECT_TRUE(Worker::is_gone(pid));
}

TEST(Worker, SharesMemoryWithItsParent) {
  struct Numbers {
    int first, second;
  };
  auto shared = Shared<Numbers>::make();
  ASSERT_TRUE(shared);
  EXPECT_EQ((*shared)->second, 0);
  auto worker = Worker::start("test", [&shared](int) { return (*shared)->second = 42; });
  EXPECT_EQ(worker->ended(milliseconds(5000))->exit_code, 42);
  EXPECT_EQ((*shared)->second, 42);
}

}  // namespace
}  // namespace gpuwright
