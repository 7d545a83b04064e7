// The reader on NVIDIA's library as a simulated driver in trouble speaks it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "device/reader.h"
#include "sim/host.h"

namespace gpuwright::device {
namespace {

using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr milliseconds kDeadline{600};

ReaderOptions host_with(const std::string& faults) {
  const std::string text = "hostname = \"node-a\"\n[[gpu]]\nid = \"h100-sxm5-80gb\"\ncount = 3\n" + faults;
  auto host = sim::Host::from_toml(text, "trouble");
  EXPECT_TRUE(host) << host.error().message();
  ReaderOptions options;
  options.sources.simulated = host ? *host : nullptr;
  options.call_deadline = kDeadline;
  return options;
}

std::vector<State> states(const Snapshot& snapshot) {
  std::vector<State> states;
  for (const Gpu& gpu : snapshot.gpus) states.push_back(gpu.state);
  return states;
}

TEST(ReaderOnNvml, SaysThatItIsSimulated) {
  Reader reader(host_with(""));
  const Snapshot snapshot = reader.read();
  EXPECT_EQ(snapshot.simulated, "trouble");
  EXPECT_EQ(snapshot.hostname, "node-a");
  EXPECT_THAT(states(snapshot), ElementsAre(State::ok, State::ok, State::ok));
}

// gpu-monitoring-tools#46, dcgm-exporter#164, go-dcgm#38: a call that never returns.
TEST(ReaderOnNvml, HungCallOfOneGpuLeavesTheOthersAlone) {
  Reader reader(host_with("[[fault]]\nkind = \"hang\"\ngpus = [1]\nfunction = \"nvmlDeviceGetMemoryInfo\"\n"));
  const auto start = std::chrono::steady_clock::now();
  const Snapshot snapshot = reader.read();
  EXPECT_LT(std::chrono::steady_clock::now() - start, kDeadline * 5 / 3 + milliseconds(700));
  EXPECT_THAT(states(snapshot), ElementsAre(State::ok, State::unresponsive, State::ok));
  const Gpu& hung = snapshot.gpus[1];
  EXPECT_THAT(hung.state_detail, HasSubstr("nvmlDeviceGetMemoryInfo"));
  EXPECT_THAT(hung.state_detail, HasSubstr("did not answer in 600 ms"));
  EXPECT_THAT(hung.uuid.value_or(""), HasSubstr("GPU-"));
  EXPECT_EQ(hung.memory_used, Why::unresponsive);
  EXPECT_TRUE(snapshot.gpus[2].memory_used.known());
}

// go-nvml#152: nvmlInit hangs (driver 570.148).
TEST(ReaderOnNvml, SlowCallsOfOneGpuAddUpToNoMoreThanTheTimeOfAReading) {
  ReaderOptions options = host_with("[[fault]]\nkind = \"slow\"\ngpus = [1]\nmicroseconds = 300000\n");
  options.call_deadline = milliseconds(1500);
  Reader reader(options);
  for (int i = 0; i < 2; ++i) {  // 14.5 s for the first
    const auto start = std::chrono::steady_clock::now();
    const Snapshot snapshot = reader.read();
    EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(3000));
    EXPECT_THAT(states(snapshot), ElementsAre(State::ok, State::unresponsive, State::ok));
    EXPECT_THAT(snapshot.gpus[1].state_detail, HasSubstr("too slow"));
    EXPECT_TRUE(snapshot.gpus[1].name.known());
    EXPECT_TRUE(snapshot.gpus[2].memory_used.known());
  }
}

TEST(ReaderOnNvml, SlowCallsOfAllGpusAddUpToNoMoreThanTheTimeOfAReading) {
  ReaderOptions options = host_with("[[fault]]\nkind = \"slow\"\nmicroseconds = 20000\n");
  options.call_deadline = milliseconds(1500);
  Reader reader(options);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(states(reader.read()), SizeIs(3));
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(3000));
}

TEST(ReaderOnNvml, HungInitIsTold) {
  Reader reader(host_with("[[fault]]\nkind = \"hang\"\nfunction = \"nvmlInit\"\n"));
  const Snapshot snapshot = reader.read();
  EXPECT_THAT(snapshot.gpus, IsEmpty());
  ASSERT_FALSE(snapshot.sources.empty());
  EXPECT_THAT(snapshot.sources.back().text, HasSubstr("nvmlInit_v2 did not answer in 600 ms"));
  EXPECT_EQ(snapshot.sources.back().outcome, SourceReport::Outcome::failed);
}

TEST(ReaderOnNvml, AHangThatEndsIsOver) {
  ReaderOptions options = host_with("[[fault]]\nkind = \"hang\"\ngpus = [0]\nat = 0.2\nuntil = 1.5\n");
  options.retry_after = milliseconds(100);
  Reader reader(options);
  EXPECT_THAT(states(reader.read()), Each(State::ok));
  std::this_thread::sleep_for(milliseconds(250));
  EXPECT_EQ(reader.read().gpus[0].state, State::unresponsive);
  Snapshot snapshot;
  for (int i = 0; i < 50 && (snapshot.gpus.empty() || snapshot.gpus[0].state != State::ok); ++i) {
    std::this_thread::sleep_for(milliseconds(100));
    snapshot = reader.read();
  }
  EXPECT_THAT(states(snapshot), Each(State::ok));
}

// gpustat#125, nvitop#139: one bad GPU must not cost the others their rows.
TEST(ReaderOnNvml, ALostGpuKeepsItsPlaceBesideHealthyOnes) {
  const ReaderOptions options = host_with("[[fault]]\nkind = \"lost\"\ngpus = [1]\nat = 100\n");
  options.sources.simulated->set_time(0);
  Reader reader(options);
  const Snapshot before = reader.read();
  EXPECT_THAT(states(before), Each(State::ok));
  options.sources.simulated->set_time(101);
  const Snapshot after = reader.read();
  EXPECT_THAT(states(after), ElementsAre(State::ok, State::lost, State::ok));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(after.gpus[i].uuid, before.gpus[i].uuid) << i;
  EXPECT_EQ(after.gpus[1].memory_used, Why::lost);
}

TEST(ReaderOnNvml, ADriverThatIsUnloadedAndComesBackKeepsTheRows) {
  const ReaderOptions options = host_with("[[fault]]\nkind = \"not loaded\"\nat = 10\nuntil = 20\n");
  options.sources.simulated->set_time(0);
  Reader reader(options);
  const Snapshot before = reader.read();
  options.sources.simulated->set_time(11);
  const Snapshot without = reader.read();
  ASSERT_THAT(without.gpus, SizeIs(3));
  for (const Gpu& gpu : without.gpus) {
    EXPECT_NE(gpu.state, State::ok);
    EXPECT_FALSE(gpu.memory_used.known());
    EXPECT_FALSE(gpu.state_detail.empty());
  }
  options.sources.simulated->set_time(21);
  Snapshot after = reader.read();
  for (int i = 0; i < 40 && after.gpus[0].state != State::ok; ++i) {
    std::this_thread::sleep_for(milliseconds(100));
    after = reader.read();
  }
  EXPECT_THAT(states(after), Each(State::ok));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(after.gpus[i].uuid, before.gpus[i].uuid) << i;
}

}  // namespace
}  // namespace gpuwright::device
