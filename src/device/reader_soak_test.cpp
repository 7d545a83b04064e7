// Very many readings, with collectors that die in between: memory stays flat, no descriptor and no zombie is left.
//   GPUWRIGHT_SOAK_READS=100000 device_test --gtest_filter='ReaderSoak.*'     the full length
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "device/collector.h"
#include "device/reader.h"
#include "device/testing/fake_driver.h"

namespace gpuwright::device {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;  // a sanitizer keeps what was freed
#else
constexpr bool kMemoryIsOurs = true;
#endif
constexpr std::int64_t kMostGrowthKib = 256;

std::int64_t resident_kib(int pid) {
  std::ifstream statm(fmt::format("/proc/{}/statm", pid));
  std::int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE) / 1024;
}

std::ptrdiff_t descriptors() {
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return std::distance(begin(folder), end(folder));
}

int reads_wanted() {
  const char* text = std::getenv("GPUWRIGHT_SOAK_READS");
  return text == nullptr ? 2000 : std::max(std::atoi(text), 1000);
}

TEST(ReaderSoak, MemoryStaysFlatAndNothingIsLeftOpen) {
  const int reads = reads_wanted(), warm = reads / 10;
  testing::FakeDriver driver("fake", 8);
  const std::ptrdiff_t open_before = descriptors();
  std::int64_t parent_before = 0, child_before = 0;
  {
    ReaderOptions options;
    options.make_sources = [&driver](const SourceOptions&) { return std::vector<SourceEntry>{driver.entry()}; };
    Reader reader(options);
    for (int i = 0; i < reads; ++i) {
      const Snapshot snapshot = reader.read();
      ASSERT_EQ(snapshot.gpus.size(), 8u);
      ASSERT_EQ(snapshot.gpus[7].state, State::ok) << i << ": " << snapshot.gpus[7].state_detail;
      if (i % (reads / 20) == reads / 40) ::kill(reader.collector_pid(), SIGKILL);
      if (i != warm) continue;
      parent_before = resident_kib(::getpid());
      child_before = resident_kib(reader.collector_pid());
    }
    const std::int64_t parent = resident_kib(::getpid()), child = resident_kib(reader.collector_pid());
    fmt::print("{} readings: parent {} -> {} KiB, collector {} -> {} KiB\n", reads, parent_before, parent, child_before,
               child);
    if (kMemoryIsOurs) {
      EXPECT_LE(parent, parent_before + kMostGrowthKib);
      EXPECT_LE(child, child_before + kMostGrowthKib);
    }
  }
  EXPECT_EQ(descriptors(), open_before);
  // Memory of a sanitizer takes long to be given back: those that were killed may be ending still.
  if (!kMemoryIsOurs)
    while (::waitpid(-1, nullptr, 0) > 0) continue;
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace gpuwright::device
