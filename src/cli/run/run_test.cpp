#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <sstream>

#include "cli/run/curve.h"
#include "cli/run/explain_job.h"
#include "cli/run/job_processes.h"
#include "cli/run/job_words.h"
#include "cli/run/kernel_log.h"
#include "cli/run/listener.h"
#include "cli/run/spill.h"

namespace gpuwright::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> fit_words(const std::vector<std::string>& command) {
  const auto job = job_words(command);
  return job ? job->words : std::vector<std::string>{};
}

// docs.vllm.ai, "vllm serve"; github.com/ggml-org/llama.cpp tools/server/README.md; the arguments of transformers'
// TrainingArguments and TRL's ModelConfig.
TEST(JobWords, OfServers) {
  EXPECT_THAT(fit_words({"vllm", "serve", "Qwen/Qwen2.5-7B", "--max-model-len=8192", "-tp", "2", "--port", "8000"}),
              ElementsAre("Qwen/Qwen2.5-7B", "--engine", "vllm", "--context", "8192", "--tensor-parallel", "2"));
  EXPECT_THAT(fit_words({"python", "-m", "vllm.entrypoints.openai.api_server", "--enforce-eager", "--model", "m"}),
              ElementsAre("m", "--engine", "vllm", "--enforce-eager"));
  EXPECT_THAT(fit_words({"/opt/bin/llama-server", "-m", "a.gguf", "-c", "32768", "-ngl", "99", "--host", "::"}),
              ElementsAre("a.gguf", "--engine", "llama.cpp", "--context", "32768", "--gpu-layers", "99"));
  EXPECT_THAT(fit_words({"python3", "-m", "sglang.launch_server", "--model-path", "m", "--tp", "4"}),
              ElementsAre("m", "--engine", "sglang", "--tensor-parallel", "4"));
}

TEST(JobWords, OfTrainers) {
  const auto job =
      job_words({"torchrun", "--nproc_per_node", "8", "train.py", "--model_name_or_path", "m", "--use_peft", "True",
                 "--lora_r", "16", "--per_device_train_batch_size", "4", "--gradient_checkpointing"});
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->training);
  EXPECT_EQ(job->batch, 4);
  EXPECT_THAT(job->words,
              ElementsAre("m", "--train", "lora", "--batch", "4", "--rank", "16", "--checkpointing", "full"));
  EXPECT_THAT(fit_words({"train.py", "--model_name_or_path", "m", "--learning_rate", "1e-4", "--load_in_4bit"}),
              ElementsAre("m", "--train", "qlora"));
}

TEST(JobWords, OfWhatIsNeither) {
  EXPECT_THAT(fit_words({"make", "-j8"}), IsEmpty());
  EXPECT_THAT(fit_words({"python", "eval.py", "--model_name_or_path", "m"}), IsEmpty());
  EXPECT_THAT(fit_words({"vllm", "serve"}), IsEmpty());
  EXPECT_THAT(fit_words({}), IsEmpty());
}

TEST(Curve, KeepsPeakAndShapeInBoundedMemory) {
  Curve curve;
  for (int i = 0; i < 100'000; ++i) curve.add(i, Bytes{i == 70'000 ? 9'000'000 : i});
  EXPECT_LE(curve.whole().size(), Curve::kPieces);
  EXPECT_EQ(curve.peak().size.count, 9'000'000);
  EXPECT_EQ(curve.peak().seconds, 70'000);
  Bytes most;
  for (const auto& point : curve.whole()) most = std::max(most, point.size);
  EXPECT_EQ(most.count, 9'000'000) << "a peak is not averaged away";
  EXPECT_EQ(curve.last_seconds(60).size(), 61u);
}

TEST(LineMerger, LeavesLinesWhole) {
  LineMerger merger;
  std::string text;
  merger.add(0, "out be", text);
  merger.add(1, "err\nerr b", text);
  merger.add(0, "gins\n", text);
  merger.add(1, "10%\r20%\r3", text);
  merger.finish(text);
  EXPECT_EQ(text, "err\nout begins\nerr b10%\r20%\r3\n");
}

TEST(TextEnds, KeepsBothEnds) {
  TextEnds ends;
  ends.add("first ");
  for (int i = 0; i < 100; ++i) ends.add(std::string(100'000, 'x'));
  ends.add(" last");
  EXPECT_LT(ends.text().size(), 2u << 20);
  EXPECT_TRUE(ends.text().starts_with("first x"));
  EXPECT_TRUE(ends.text().ends_with("x last"));
}

TEST(Spill, IsFirstInFirstOut) {
  Spill spill;
  std::string text;
  for (const char* piece : {"one", "two", "three"}) ASSERT_TRUE(spill.add(piece));
  EXPECT_EQ(spill.size(), 11);
  ASSERT_TRUE(spill.take(text, 4));
  EXPECT_EQ(text, "onet");
  ASSERT_TRUE(spill.take(text, 100));
  EXPECT_EQ(text, "wothree");
  EXPECT_TRUE(spill.empty());
  ASSERT_TRUE(spill.add("again"));
  ASSERT_TRUE(spill.take(text, 100));
  EXPECT_EQ(text, "again");
}

TEST(StatLine, IsReadBehindAnyName) {
  // Fields as in proc(5): pid (name) state ppid ... utime stime cutime cstime ... starttime vsize rss.
  const auto line = parse_stat_line(
      "4711 (a) b) S 12 1 1 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 777 1000000 2048 18446744073709551615\n");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->parent, 12);
  EXPECT_EQ(line->ticks, 127);
  EXPECT_EQ(line->start_tick, 777);
  EXPECT_EQ(line->resident_pages, 2048);
  EXPECT_FALSE(parse_stat_line("4711 (cut"));
  EXPECT_FALSE(parse_stat_line(""));
}

TEST(JobProcesses, KnowsItselfAndNoStranger) {
  JobProcesses own(::getpid(), "GPUWRIGHT_RUN=none", false);
  EXPECT_GT(own.look().resident.count, 0);
  device::Process process;
  process.pid_here = std::int64_t{::getpid()};
  EXPECT_TRUE(own.owns(process));
  process.pid_here = std::int64_t{::getppid()};
  EXPECT_FALSE(own.owns(process));
}

// Documentation/ABI/testing/dev-kmsg of Linux.
TEST(KernelLog, RecordsAreLinesOfDmesg) {
  EXPECT_EQ(kernel_line("7,160,424069,-;pci_root PNP0A03:00: host bridge window\n SUBSYSTEM=acpi\n"),
            "[    0.424069] pci_root PNP0A03:00: host bridge window\n");
  EXPECT_EQ(kernel_line("no record"), "");
}

TEST(KernelLog, OthersDeathsAreNotTheJobs) {
  const std::string text =
      "[1.0] Out of memory: Killed process 4711 (python) total-vm:1kB\n"
      "[1.1] Out of memory: Killed process 4712 (other) total-vm:1kB\n"
      "[1.2] usb 1-1: new device\n"
      "[1.3] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n";
  const std::string ours = lines_of_job(text, {4711}, true);
  EXPECT_THAT(ours, HasSubstr("4711"));
  EXPECT_THAT(ours, Not(HasSubstr("4712")));
  EXPECT_THAT(ours, Not(HasSubstr("usb")));
  EXPECT_THAT(ours, HasSubstr("Xid"));
  EXPECT_THAT(lines_of_job(text, {1}, false), HasSubstr("4712")) << "numbers of another namespace say nothing";
}

// memory.events of cgroup v2 and memory.oom_control of v1 (Documentation/admin-guide/cgroup-v2.rst,
// cgroup-v1/memory.rst)
TEST(KernelLog, CountsOfControlGroups) {
  EXPECT_EQ(oom_kills_in("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n"), 2);
  EXPECT_EQ(oom_kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"), 5);
  EXPECT_FALSE(oom_kills_in("nothing"));
  EXPECT_THAT(memory_event_files("9:cpu:/a\n4:memory:/b\n0::/c\n"),
              ElementsAre("/sys/fs/cgroup/memory/b/memory.oom_control", "/sys/fs/cgroup/memory/memory.oom_control",
                          "/sys/fs/cgroup/c/memory.events", "/sys/fs/cgroup/memory.events"));
}

// The sentences and the rules that know them.
std::string kind_of(const Outcome& outcome, const KernelSays& kernel) {
  Listener listener("train.py");
  listener.add(0, "epoch 1\n");
  auto heard = listener.finish();
  const auto catalog = catalog::Catalog::load();
  std::ostringstream out;
  return explain::verdict(explain_job(outcome, *heard, kernel, *catalog, {out, out}));
}

Outcome ended_by(int signal) {
  Outcome outcome;
  outcome.command = {"train.py"};
  outcome.end.signal = signal;
  return outcome;
}

TEST(ExplainJob, SaysWhoKilledItOnlyWhereSomethingTells) {
  EXPECT_EQ(kind_of(ended_by(SIGKILL), {}), "job.killed");
  EXPECT_EQ(kind_of(ended_by(SIGKILL), {"", {1, 1}}), "oom.host") << "its control group counts one";
  EXPECT_EQ(kind_of(ended_by(SIGKILL), {"", {0, 1}}), "oom.host") << "the host counts one";
  EXPECT_EQ(kind_of(ended_by(SIGKILL), {"[1.0] Out of memory: Killed process 4711 (python)\n", {}}), "oom.host");
  EXPECT_EQ(kind_of(ended_by(SIGTERM), {"", {0, 1}}), "job.asked_to_end") << "another one was killed";
}

TEST(ExplainJob, OtherEnds) {
  EXPECT_EQ(kind_of(ended_by(SIGSEGV), {}), "job.crashed");
  EXPECT_EQ(kind_of(ended_by(SIGINT), {}), "not_gpu.user_interrupt");
  Outcome outcome = ended_by(0);
  outcome.end.exit_code = 3;
  EXPECT_EQ(kind_of(outcome, {}), "unknown");
  outcome.gpus.xids.push_back({0, "0000:3b:00.0", {79, {}, 1}});
  EXPECT_EQ(kind_of(outcome, {}), "xid.79");
}

}  // namespace
}  // namespace gpuwright::cli
