// Which GPUs are meant, which are free, and which process is ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "cli/live/background.h"
#include "cli/live/free_gpus.h"
#include "cli/live/kill.h"
#include "cli/live/processes.h"
#include "cli/live/select.h"
#include "cli/live/testing/machines.h"

namespace gpuwright::cli {
namespace {

using device::Why;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::size_t> selected(const device::Snapshot& snapshot, std::string_view words) {
  const auto positions = select_gpus(snapshot, words);
  EXPECT_TRUE(positions.has_value()) << words;
  return positions.value_or(std::vector<std::size_t>{});
}

TEST(Select, ByNumberRangeUuidAddressAndName) {
  device::Snapshot snapshot = testing::many_gpus(6);
  snapshot.gpus[4].name = std::string("NVIDIA A100-SXM4-80GB");
  EXPECT_THAT(selected(snapshot, "0,2-3"), ElementsAre(0, 2, 3));
  EXPECT_THAT(selected(snapshot, "GPU-5f1c0000-0000-4000-8000-000000000005"), ElementsAre(5));
  EXPECT_THAT(selected(snapshot, "1f:00.0"), ElementsAre(1));
  EXPECT_THAT(selected(snapshot, "a100, 1"), ElementsAre(1, 4));
}

TEST(Select, WhatIsNotThereIsToldWithWhatIs) {
  const device::Snapshot snapshot = testing::two_gpus();
  const auto missing = select_gpus(snapshot, "7");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().hint, HasSubstr("1 NVIDIA H100"));
  EXPECT_FALSE(select_gpus(snapshot, "3-1").has_value());
  EXPECT_FALSE(select_gpus(snapshot, "0,,1").has_value());
  EXPECT_FALSE(select_gpus(snapshot, "").has_value());
}

TEST(Select, ProcessesGoWithTheirGpu) {
  device::Snapshot snapshot = testing::two_gpus();
  keep_only(snapshot, {1});
  ASSERT_EQ(snapshot.gpus.size(), 1u);
  EXPECT_EQ(snapshot.gpus[0].index, 1);
  ASSERT_EQ(snapshot.processes.size(), 1u);
  EXPECT_EQ(snapshot.processes[0].pid, 4812);
}

// GPUs 1 and 3 of four are empty.
device::Snapshot half_free() {
  device::Snapshot snapshot = testing::many_gpus(4);
  for (const int index : {1, 3}) {
    device::Gpu& gpu = snapshot.gpus[static_cast<std::size_t>(index)];
    gpu.utilization = Ratio{0};
    gpu.memory_used = Bytes::from_mib(4);
    gpu.memory_free = *gpu.memory_total - *gpu.memory_reserved - *gpu.memory_used;
  }
  snapshot.processes.erase(snapshot.processes.begin() + 3);
  snapshot.processes.erase(snapshot.processes.begin() + 1);
  return snapshot;
}

std::vector<int> chosen(const device::Snapshot& snapshot, const FreeRules& rules,
                        std::optional<std::size_t> count = {}) {
  std::vector<int> indices;
  for (const device::Gpu* gpu : choose(judge(snapshot, rules), count)) indices.push_back(gpu->index);
  return indices;
}

TEST(Free, EmptyAndIdleByDefault) {
  const device::Snapshot snapshot = half_free();
  EXPECT_THAT(chosen(snapshot, {}), ElementsAre(1, 3));
  EXPECT_THAT(chosen(snapshot, {}, 1), ElementsAre(1));
  EXPECT_THAT(judge(snapshot, {})[0].obstacle, HasSubstr("process 5000 of alice"));
}

TEST(Free, AProcessThatHasNotTakenItsMemoryYetIsInTheWay) {
  device::Snapshot snapshot = half_free();
  device::Process starting = testing::training_process(1, 6000);
  starting.memory = Bytes::from_mib(300);
  snapshot.processes.push_back(starting);
  EXPECT_THAT(chosen(snapshot, {}), ElementsAre(3));
}

TEST(Free, BesideOthersWhenMemoryIsAskedFor) {
  device::Snapshot snapshot = half_free();
  for (device::Gpu& gpu : snapshot.gpus) gpu.utilization = Ratio{0};
  FreeRules rules;
  rules.memory = Bytes::from_gib(8);
  EXPECT_THAT(chosen(snapshot, rules), ElementsAre(0, 1, 2, 3));
  rules.exclusive = true;
  EXPECT_THAT(chosen(snapshot, rules), ElementsAre(1, 3));
  rules.user = "alice";
  EXPECT_THAT(chosen(snapshot, rules), ElementsAre(0, 1, 2, 3));
}

TEST(Free, NotWhatIsLostOrUnknownOrCutUp) {
  device::Snapshot snapshot = half_free();
  snapshot.gpus[1].state = device::State::lost;
  EXPECT_THAT(chosen(snapshot, {}), ElementsAre(3));
  snapshot.gpus[3].memory_free = Why::not_supported;
  EXPECT_THAT(chosen(snapshot, {}), ElementsAre());
  snapshot = half_free();
  snapshot.gpus[1].mig_mode = true;
  snapshot.gpus[3].compute_mode = std::string("prohibited");
  EXPECT_THAT(chosen(snapshot, {}), ElementsAre());
}

TEST(Free, WordsForTheEnvironment) {
  device::Snapshot snapshot = half_free();
  EXPECT_EQ(visible_devices(snapshot, {&snapshot.gpus[1], &snapshot.gpus[3]}, false),
            "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1,3");
  EXPECT_EQ(visible_devices(snapshot, {&snapshot.gpus[1]}, true),
            "CUDA_VISIBLE_DEVICES=GPU-5f1c0000-0000-4000-8000-000000000001");
  // HIP counts what it can use; DRM's cards have other numbers where card0 is a display adapter.
  for (const std::size_t at : {std::size_t{1}, std::size_t{3}}) {
    snapshot.gpus[at].vendor = device::Vendor::amd;
    snapshot.gpus[at].vendor_index = static_cast<int>(at);
  }
  EXPECT_EQ(visible_devices(snapshot, {&snapshot.gpus[1], &snapshot.gpus[3]}, false), "HIP_VISIBLE_DEVICES=0,1");
  EXPECT_EQ(visible_devices(snapshot, {&snapshot.gpus[3]}, false), "HIP_VISIBLE_DEVICES=1");
  device::Snapshot selected = snapshot;
  keep_only(selected, {3});
  EXPECT_EQ(visible_devices(snapshot, {&selected.gpus[0]}, false), "HIP_VISIBLE_DEVICES=1");
}

TEST(Processes, WhereTheyRun) {
  device::Process process = testing::training_process(0, 1);
  EXPECT_EQ(place_of(process), "");
  process.systemd_unit = std::string("session-3.scope");
  EXPECT_EQ(place_of(process), "");
  process.systemd_unit = std::string("vllm.service");
  EXPECT_EQ(place_of(process), "vllm.service");
  process.container = std::string("3f2a91c0b7deaaaaaaaa");
  process.container_runtime = std::string("docker");
  EXPECT_EQ(place_of(process), "docker 3f2a91c0b7de");
  process.slurm_job = std::string("4711.0");
  EXPECT_EQ(place_of(process), "slurm 4711.0");
}

// A child that only waits, as a process on GPU 0.
class Kill : public ::testing::Test {
 protected:
  Kill() {
    child_ = fork();
    if (child_ == 0) {
      pause();
      _exit(0);
    }
    snapshot_ = testing::two_gpus();
    device::Process process = testing::training_process(0, child_);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    process.started = device::UnixTime{std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
    snapshot_.processes.push_back(process);
  }
  ~Kill() override {
    if (!reaped_) kill(child_, SIGKILL), waitpid(child_, nullptr, 0);
  }
  int signal_that_ended() {
    int status = 0;
    waitpid(child_, &status, 0);
    reaped_ = true;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  Result<int> run(std::int64_t pid, bool yes) {
    Console console{out_, err_};
    return kill_gpu_process(snapshot_, pid, SIGTERM, yes, console);
  }

  pid_t child_;
  device::Snapshot snapshot_;
  std::ostringstream out_, err_;
  bool reaped_ = false;
};

TEST_F(Kill, EndsAProcessThatIsOnAGpu) {
  const auto code = run(child_, true);
  ASSERT_TRUE(code.has_value()) << code.error().message();
  EXPECT_EQ(*code, kDone);
  EXPECT_EQ(signal_that_ended(), SIGTERM);
  EXPECT_THAT(err_.str(), HasSubstr("python train.py"));
}

TEST_F(Kill, NotWithoutAYes) {
  const auto code = run(child_, false);
  ASSERT_FALSE(code.has_value());
  EXPECT_THAT(code.error().hint, HasSubstr("--yes"));
  EXPECT_EQ(kill(child_, 0), 0);
}

TEST_F(Kill, NotWhatIsOnNoGpu) {
  const auto code = run(getpid(), true);
  ASSERT_FALSE(code.has_value());
  EXPECT_EQ(code.error().code, ErrorCode::not_found);
}

// The number of a process that ended is given to another one between two looks.
TEST_F(Kill, NotAnotherProcessOfTheSameNumber) {
  snapshot_.processes.back().started =
      device::UnixTime{snapshot_.processes.back().started->nanoseconds - 60'000'000'000};
  const auto code = run(child_, true);
  ASSERT_FALSE(code.has_value());
  EXPECT_THAT(code.error().what, HasSubstr("no longer the one"));
  EXPECT_EQ(kill(child_, 0), 0);
}

TEST_F(Kill, NotInASimulation) {
  snapshot_.simulated = "8xh100";
  EXPECT_FALSE(run(child_, true).has_value());
  EXPECT_EQ(kill(child_, 0), 0);
}

TEST(Signal, ByNameOrNumber) {
  EXPECT_EQ(signal_named("TERM").value(), SIGTERM);
  EXPECT_EQ(signal_named("sigint").value(), SIGINT);
  EXPECT_EQ(signal_named("9").value(), SIGKILL);
  EXPECT_FALSE(signal_named("BOOM").has_value());
  EXPECT_FALSE(signal_named("0").has_value());
}

class SlowFeed : public Feed {
 public:
  Result<std::optional<device::Snapshot>> next() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return std::optional(testing::two_gpus());
  }
};

// nvtop#139: the screen froze while values were gathered.
TEST(Background, WhoShowsNeverWaits) {
  using Clock = std::chrono::steady_clock;
  std::atomic<int> ready = 0;
  const auto begin = Clock::now();
  {
    Background background(std::make_unique<SlowFeed>(), [&] { ++ready; });
    background.request();
    EXPECT_TRUE(background.busy());
    EXPECT_FALSE(background.take().has_value());
    EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(200));
    while (ready == 0 && Clock::now() - begin < std::chrono::seconds(10))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto result = background.take();
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->value()->gpus.size(), 2u);
    background.request();
  }
  // The second read is left to itself.
  EXPECT_EQ(ready, 1);
}

}  // namespace
}  // namespace gpuwright::cli
