#include <gtest/gtest.h>

#include "device/process/proc_files.h"
#include "device/process/users.h"
#include "device/source.h"
#include "device/testing/tree.h"
#include "sim/host.h"

namespace gpuwright::device {
namespace {

const std::string kId = "1f0c8e4d6a2b9375e1c4d8f7a6b5c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6";

// Lines as proc(5) and the kernel's Documentation/filesystems/proc.rst show them.
std::string stat_line(int pid, const std::string& name, int utime, int stime, int starttime) {
  return std::to_string(pid) + " (" + name + ") S 1 7 7 0 -1 4194560 90 0 0 0 " + std::to_string(utime) + " " +
         std::to_string(stime) + " 0 0 20 0 9 0 " + std::to_string(starttime) +
         " 3301318656 262144 18446744073709551615 "
         "1 1 0 0 0 0 0 4096 17659 0 0 0 17 3 0 0 0 0 0\n";
}
std::string status_text(int uid, const std::string& nspid, int kib) {
  return "Name:\tpython3\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t7\nPid:\t7\nPPid:\t1\nUid:\t" +
         std::to_string(uid) + "\t0\t0\t0\nGid:\t0\t0\t0\t0\nNSpid:\t" + nspid + "\nVmRSS:\t" + std::to_string(kib) +
         " kB\nThreads:\t9\n";
}

class ProcessSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tree_.file("proc/stat", "cpu  1 2 3\nintr 5\nbtime 1750000000\nprocesses 9\n");
    tree_.file("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000:Ada,,,:/home/ada:/bin/sh\n");
    SourceOptions options;
    options.root = tree_.root();
    source_ = process_source(options);
  }
  void add_process(int pid, const std::string& nspid, const std::string& cgroup) {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    tree_.file(folder + "status", status_text(1000, nspid, 2048));
    tree_.file(folder + "stat", stat_line(pid, "python3", 100, 20, 500));
    tree_.file(folder + "cmdline", std::string("python3\0-m\0vllm.entrypoints\0", 28));
    tree_.file(folder + "cgroup", cgroup);
    tree_.link(folder + "exe", "/usr/bin/python3.12");
  }
  const Process& read(std::int64_t pid, std::int64_t monotonic_ns = 1'000'000'000) {
    snapshot_ = {};
    snapshot_.monotonic_ns = monotonic_ns;
    Process process;
    process.pid = pid;
    snapshot_.processes = {process};
    source_->read(snapshot_, no_watch());
    return snapshot_.processes[0];
  }

  testing::Tree tree_;
  std::unique_ptr<Source> source_;
  Snapshot snapshot_;
};

TEST_F(ProcessSourceTest, TellsWhoAndSinceWhen) {
  add_process(7, "7", "0::/system.slice/docker-" + kId + ".scope\n");
  const Process& process = read(7);
  EXPECT_EQ(process.user, std::string("ada"));
  EXPECT_EQ(process.command, std::string("python3 -m vllm.entrypoints"));
  EXPECT_EQ(process.executable, std::string("/usr/bin/python3.12"));
  EXPECT_EQ(process.host_memory, Bytes{2048 * 1024});
  EXPECT_EQ(process.started, (UnixTime{1750000005'000000000}));  // USER_HZ is 100: 500 ticks after the boot
  EXPECT_EQ(process.pid_here, std::int64_t{7});
  EXPECT_EQ(process.container, kId);
  EXPECT_EQ(process.container_runtime, std::string("docker"));
  EXPECT_EQ(process.slurm_job, std::string());
  EXPECT_EQ(process.cpu.why(), Why::needs_two_samples);
}

TEST_F(ProcessSourceTest, CpuIsTheDifferenceOfTwoReads) {
  add_process(7, "7", "0::/\n");
  read(7, 1'000'000'000);
  tree_.file("proc/7/stat", stat_line(7, "python3", 200, 70, 500));
  const Process& process = read(7, 2'000'000'000);
  ASSERT_TRUE(process.cpu);
  EXPECT_DOUBLE_EQ(process.cpu->value, 1.5);  // 150 ticks of 1/100 s in one second
  // Another process has taken the number: its ticks are not compared with those of the first.
  tree_.file("proc/7/stat", stat_line(7, "python3", 900, 0, 77777));
  EXPECT_EQ(read(7, 3'000'000'000).cpu.why(), Why::needs_two_samples);
}

TEST_F(ProcessSourceTest, PodsAreNamedByTheKubeletsLogFolder) {
  add_process(
      7, "7",
      "0::/kubepods.slice/kubepods-podf4c0b9d5_1c3e_4a3a_9f57_0e1d8a6c2b11.slice/cri-containerd-" + kId + ".scope\n");
  tree_.folder("var/log/pods/ml-team_llama-0_f4c0b9d5-1c3e-4a3a-9f57-0e1d8a6c2b11");
  const Process& process = read(7);
  EXPECT_EQ(process.pod, std::string("llama-0"));
  EXPECT_EQ(process.kubernetes_namespace, std::string("ml-team"));
  EXPECT_EQ(process.pod_uid, std::string("f4c0b9d5-1c3e-4a3a-9f57-0e1d8a6c2b11"));
}

// nvtop#149, #70; nvidia-docker#1483: the driver has no PID namespaces.
TEST_F(ProcessSourceTest, ProcessListEmptyOrWrongInContainers) {
  add_process(7, "7 3", "0::/\n");
  add_process(8, "8 4", "0::/\n");
  tree_.link("proc/self/ns/pid", "pid:[4026532999]");  // this program runs in a namespace of its own
  tree_.link("proc/7/ns/pid", "pid:[4026532999]");
  tree_.link("proc/8/ns/pid", "pid:[4026532888]");
  EXPECT_EQ(read(7).pid_here, std::int64_t{3});
  const Process& other = read(8);
  EXPECT_EQ(other.pid, 8);
  EXPECT_EQ(other.pid_here.why(), Why::not_visible);
  EXPECT_FALSE(other.pid_here.known());
  const Process& unseen = read(99);
  EXPECT_EQ(unseen.user.why(), Why::not_visible);
  EXPECT_EQ(unseen.command.why(), Why::not_visible);
  EXPECT_EQ(unseen.container.why(), Why::not_visible);
}

// The same on a simulated host: scenario pid-namespace, whose driver names 220417 what is 31 here.
TEST_F(ProcessSourceTest, ProcessesOfASimulatedHost) {
  SourceOptions options;
  options.simulated = sim::Host::from_scenario("pid-namespace").value();
  source_ = process_source(options);
  const Process seen = read(220417);
  EXPECT_EQ(seen.pid_here, std::int64_t{31});
  EXPECT_EQ(seen.command, std::string("python worker.py"));
  EXPECT_EQ(seen.pod_uid, std::string("8f14e45f-ceea-467f-a0e6-b7f1c9d4e1a2"));
  EXPECT_EQ(seen.container_runtime, std::string("containerd"));
  EXPECT_EQ(seen.pod.why(), Why::no_data);  // its node's log folder is not simulated
  const Process& other = read(198822);
  EXPECT_EQ(other.pid, 198822);
  EXPECT_EQ(other.pid_here.why(), Why::not_visible);
  EXPECT_EQ(other.command.why(), Why::not_visible);
}

TEST_F(ProcessSourceTest, FilesThatAreNoFilesDoNotHoldItUp) {
  add_process(7, "7", "0::/\n");
  tree_.remove("proc/7/cmdline").fifo("proc/7/cmdline");
  tree_.remove("proc/7/cgroup").link("proc/7/cgroup", "cgroup");  // a loop
  tree_.sparse("proc/7/stat", 10'000'000'000);
  const Process& process = read(7);
  EXPECT_EQ(process.user, std::string("ada"));
  EXPECT_FALSE(process.command.known());
  EXPECT_FALSE(process.container.known());
  EXPECT_FALSE(process.started.known());
  tree_.remove("proc/7/status").fifo("proc/7/status");
  EXPECT_FALSE(read(7).user.known());
}

TEST(ProcFiles, NamesMayHoldBracketsAndSpaces) {
  const auto stat = parse_proc_stat(stat_line(7, "a) R (b 1", 3, 4, 5));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a) R (b 1");
  EXPECT_EQ(stat->cpu_ticks, 7);
  EXPECT_EQ(stat->start_tick, 5);
  EXPECT_FALSE(parse_proc_stat("7 (x) S 1 2 3"));
  EXPECT_FALSE(parse_proc_stat(stat_line(7, "x", -3, 4, 5)));
  EXPECT_FALSE(parse_proc_stat(")("));
}

TEST(ProcFiles, UsersWithoutANameAreNumbers) {
  SourceOptions options;
  testing::Tree tree;
  tree.file("etc/passwd", "root:x:0:0::/:/bin/sh\n::1:\nbad\nada:x:-5:1:::\nbob:x:7:1:::\nbob2:x:7:1:::\n");
  Users users(tree.root());
  EXPECT_EQ(users.name_of(0, no_watch()), "root");
  EXPECT_EQ(users.name_of(7, no_watch()), "bob");
  EXPECT_EQ(users.name_of(4711, no_watch()), "4711");
}

}  // namespace
}  // namespace gpuwright::device
