#include "device/reader.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "device/collector.h"
#include "device/testing/fake_driver.h"

namespace gpuwright::device {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using testing::FakeDriver;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr milliseconds kDeadline{900};

class ReaderTest : public ::testing::Test {
 protected:
  ReaderOptions options() {
    ReaderOptions options;
    options.call_deadline = kDeadline;
    options.make_sources = [this](const SourceOptions&) {
      return std::vector<SourceEntry>{first_.entry(), second_.entry()};
    };
    return options;
  }
  // Reads, and holds the reader to its word: a third more than the deadline, and some for a busy machine.
  Snapshot read(Reader& reader) {
    const auto start = std::chrono::steady_clock::now();
    Snapshot snapshot = reader.read();
    took_ = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
    EXPECT_LT(took_, kDeadline * 5 / 3 + milliseconds(700));
    for (std::size_t i = 0; i < snapshot.gpus.size(); ++i) EXPECT_EQ(snapshot.gpus[i].index, static_cast<int>(i));
    return snapshot;
  }
  static std::vector<State> states(const Snapshot& snapshot) {
    std::vector<State> states;
    for (const Gpu& gpu : snapshot.gpus) states.push_back(gpu.state);
    return states;
  }

  FakeDriver first_{"first"}, second_{"second", 2};
  milliseconds took_{};
};

TEST_F(ReaderTest, RowsOfAllSourcesHaveTheirIndexAndProcesses) {
  Reader reader(options());
  const Snapshot snapshot = read(reader);
  ASSERT_THAT(snapshot.gpus, SizeIs(5));
  EXPECT_EQ(snapshot.gpus[4].name, std::string("Fake 1"));
  EXPECT_EQ(snapshot.gpus[4].source, "second");
  ASSERT_THAT(snapshot.processes, SizeIs(5));
  EXPECT_EQ(snapshot.processes[3].gpu, 3);
  EXPECT_EQ(snapshot.vendor_calls, 5);
  EXPECT_GT(snapshot.time.nanoseconds, 0);
  EXPECT_FALSE(snapshot.hostname.empty());
}

TEST_F(ReaderTest, ReadInThisProcessIsTheSame) {
  ReaderOptions here = options();
  here.in_process = true;
  Reader with_collector(options()), without(here);
  Snapshot a = read(with_collector), b = read(without);
  b.time = a.time;
  b.monotonic_ns = a.monotonic_ns;
  EXPECT_TRUE(a == b);
  EXPECT_EQ(without.collector_pid(), 0);
}

TEST_F(ReaderTest, ADeviceThatHangsIsUnresponsiveAndTheOthersGoOn) {
  first_.faults().hang = 1 << 1;
  Reader reader(options());
  const Snapshot snapshot = read(reader);
  EXPECT_GE(took_, kDeadline);
  EXPECT_THAT(states(snapshot), ElementsAre(State::ok, State::unresponsive, State::ok, State::ok, State::ok));
  const Gpu& hung = snapshot.gpus[1];
  EXPECT_EQ(hung.uuid, std::string("GPU-first-1"));
  EXPECT_EQ(hung.memory_used, Why::unresponsive);
  EXPECT_EQ(hung.state_detail, "fakeGetMemory did not answer in 900 ms");
  EXPECT_THAT(snapshot.processes, SizeIs(4));

  const Snapshot again = read(reader);  // it is left alone, so that this one is quick
  EXPECT_LT(took_, kDeadline);
  EXPECT_EQ(states(again), states(snapshot));
}

TEST_F(ReaderTest, ADeviceThatHangsLaterShowsNothingOld) {
  Reader reader(options());
  EXPECT_EQ(read(reader).gpus[2].memory_used, Bytes{1002});
  first_.faults().hang = 1 << 2;
  const Snapshot snapshot = read(reader);
  EXPECT_EQ(snapshot.gpus[2].state, State::unresponsive);
  EXPECT_EQ(snapshot.gpus[2].name, std::string("Fake 2"));
  EXPECT_EQ(snapshot.gpus[2].memory_used, Why::unresponsive);
  EXPECT_EQ(snapshot.gpus[3].memory_used, Bytes{1000});
}

TEST_F(ReaderTest, ADeviceThatHungIsTriedAgain) {
  ReaderOptions quick = options();
  quick.retry_after = milliseconds(50);
  first_.faults().hang = 1;
  Reader reader(quick);
  EXPECT_EQ(read(reader).gpus[0].state, State::unresponsive);
  first_.faults().hang = 0;
  std::this_thread::sleep_for(milliseconds(60));
  const Snapshot snapshot = read(reader);
  EXPECT_EQ(snapshot.gpus[0].state, State::ok);
  EXPECT_EQ(snapshot.gpus[0].memory_used, Bytes{1000});
}

TEST_F(ReaderTest, AHangInTheStartOfALibraryCostsOnlyItsOwnRows) {
  first_.faults().hang_in_start = true;
  Reader reader(options());
  const Snapshot snapshot = read(reader);
  ASSERT_THAT(snapshot.gpus, SizeIs(2));
  EXPECT_EQ(snapshot.gpus[0].source, "second");
  ASSERT_THAT(snapshot.sources, SizeIs(2));
  EXPECT_EQ(snapshot.sources[1].source, "first");
  EXPECT_EQ(snapshot.sources[1].outcome, SourceReport::Outcome::failed);
  EXPECT_EQ(snapshot.sources[1].text, "fakeInit did not answer in 900 ms");
}

TEST_F(ReaderTest, AHangOutsideOfAnyCallIsTheSources) {
  Reader reader(options());
  read(reader);
  second_.faults().hang_unwatched = true;
  const Snapshot snapshot = read(reader);
  EXPECT_THAT(states(snapshot), ElementsAre(State::ok, State::ok, State::ok, State::unresponsive, State::unresponsive));
  EXPECT_EQ(snapshot.gpus[4].name, std::string("Fake 1"));
}

TEST_F(ReaderTest, AllDevicesHangingAtOnceDoNotAddUp) {
  Reader reader(options());
  read(reader);
  first_.faults().hang = 0b111;
  second_.faults().hang = 0b11;
  const Snapshot snapshot = read(reader);
  EXPECT_THAT(states(snapshot), ::testing::Each(State::unresponsive));
  EXPECT_THAT(snapshot.gpus, SizeIs(5));
  EXPECT_THAT(snapshot.processes, IsEmpty());
}

TEST_F(ReaderTest, ACrashIsToldAndTheOthersGoOn) {
  first_.faults().crash = 1;
  Reader reader(options());
  const Snapshot snapshot = read(reader);
  EXPECT_THAT(states(snapshot), ElementsAre(State::failed, State::ok, State::ok, State::ok, State::ok));
  EXPECT_EQ(snapshot.gpus[0].uuid, std::string("GPU-first-0"));
  EXPECT_EQ(snapshot.gpus[0].memory_used, Why::failed);
  EXPECT_THAT(snapshot.gpus[0].state_detail, HasSubstr("ended by signal 11 (Segmentation fault) in fakeGetMemory"));
}

TEST_F(ReaderTest, TheOutOfMemoryKillerIsNotTheDevicesFault) {
  Reader reader(options());
  read(reader);
  ::kill(reader.collector_pid(), SIGKILL);
  EXPECT_THAT(states(read(reader)), ::testing::Each(State::ok));
  first_.faults().out_of_memory = true;  // again and again: then it is told
  const Snapshot snapshot = read(reader);
  EXPECT_EQ(snapshot.gpus[0].state, State::failed);
  EXPECT_THAT(snapshot.gpus[0].state_detail, HasSubstr("signal 9"));
}

TEST_F(ReaderTest, ALostDeviceKeepsItsRowBesideHealthyOnes) {
  Reader reader(options());
  read(reader);
  first_.faults().lost = 1 << 1;
  Snapshot snapshot = read(reader);
  EXPECT_THAT(states(snapshot), ElementsAre(State::ok, State::lost, State::ok, State::ok, State::ok));
  EXPECT_EQ(snapshot.gpus[1].uuid, std::string("GPU-first-1"));
  first_.faults().gone = 1 << 1;  // the driver does not even count it any more
  snapshot = read(reader);
  EXPECT_THAT(states(snapshot), ElementsAre(State::ok, State::lost, State::ok, State::ok, State::ok));
  EXPECT_EQ(snapshot.gpus[1].state_detail, "first does not tell of it any more");
  EXPECT_EQ(snapshot.gpus[2].uuid, std::string("GPU-first-2"));
  ASSERT_THAT(snapshot.processes, SizeIs(4));
  EXPECT_EQ(snapshot.processes[1].gpu, 2);
}

TEST_F(ReaderTest, ASourceThatAsksABarredDeviceIsLeftAlone) {
  first_.faults().hang = 1;
  first_.faults().ignores_the_ban = true;
  ReaderOptions patient = options();  // two hangs in one reading, and time for the rest on a busy machine
  patient.call_deadline = milliseconds(2000);
  Reader reader(patient);
  const Snapshot snapshot = reader.read();
  EXPECT_EQ(snapshot.gpus.back().source, "second");
  EXPECT_EQ(snapshot.gpus.back().state, State::ok);
  EXPECT_EQ(snapshot.gpus.front().state, State::unresponsive);
}

TEST_F(ReaderTest, ABugOfASourceIsToldAndCostsNoOther) {
  first_.faults().throws = true;
  Reader reader(options());
  const Snapshot snapshot = read(reader);
  EXPECT_THAT(snapshot.gpus, SizeIs(5));
  EXPECT_EQ(snapshot.sources[0].text, "a bug");
}

TEST_F(ReaderTest, SlowCallsAreNoHang) {
  first_.faults().slow_ms = 400;  // together longer than the deadline
  Reader reader(options());
  EXPECT_THAT(states(reader.read()), ::testing::Each(State::ok));
}

TEST_F(ReaderTest, XidsOfAnEarlierCollectorAreNotForgotten) {
  first_.faults().xid = 79;
  Reader reader(options());
  read(reader);
  ::kill(reader.collector_pid(), SIGKILL);
  EXPECT_EQ(read(reader).gpus[0].xids[0].count, 2);
  EXPECT_EQ(read(reader).gpus[0].xids[0].count, 2);
}

std::vector<std::string> descriptors_of(int pid) {
  std::vector<std::string> names;
  const std::string path = "/proc/" + std::to_string(pid) + "/fd";
  DIR* folder = ::opendir(path.c_str());
  while (const dirent* entry = folder == nullptr ? nullptr : ::readdir(folder))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  if (folder != nullptr) ::closedir(folder);
  return names;
}

TEST_F(ReaderTest, TheCollectorHoldsNothingOfItsParentOpen) {
  int pipe_of_parent[2];
  ASSERT_EQ(::pipe(pipe_of_parent), 0);
  Reader reader(options());
  read(reader);
  EXPECT_THAT(descriptors_of(reader.collector_pid()), SizeIs(4));  // the standard streams and the socket
  ::close(pipe_of_parent[0]);
  ::close(pipe_of_parent[1]);
}

TEST_F(ReaderTest, WhatIsTypedAtTheTerminalIsTheParentsToDecide) {
  Reader reader(options());
  read(reader);
  const int pid = reader.collector_pid();
  for (const int number : {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGTSTP}) ::kill(pid, number);
  EXPECT_THAT(states(read(reader)), ::testing::Each(State::ok));
  EXPECT_EQ(reader.collector_pid(), pid);
}

// A parent that is killed cannot tell its child anything.
TEST_F(ReaderTest, TheCollectorEndsWithItsParent) {
  int pids[2];
  ASSERT_EQ(::pipe(pids), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    Reader reader(options());
    reader.read();
    const int pid = reader.collector_pid();
    if (::write(pids[1], &pid, sizeof pid) == sizeof pid) ::raise(SIGKILL);
    ::_exit(1);
  }
  int collector = 0;
  ASSERT_EQ(::read(pids[0], &collector, sizeof collector), static_cast<ssize_t>(sizeof collector));
  ::close(pids[0]);
  ::close(pids[1]);
  ASSERT_EQ(::waitpid(parent, nullptr, 0), parent);
  const auto is_running = [collector] {  // it may wait as a zombie for whoever inherited it
    std::ifstream stat("/proc/" + std::to_string(collector) + "/stat");
    std::string pid, name, state;
    return (stat >> pid >> name >> state) && state != "Z";
  };
  for (int i = 0; i < 200 && is_running(); ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_FALSE(is_running());
}

}  // namespace
}  // namespace gpuwright::device
