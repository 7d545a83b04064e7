#include "device/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "device/frame.h"
#include "device/recording_part.h"

namespace gpuwright::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RecordingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "recording-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    file_ = folder_ + "/gpus.gwr";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Tells itself apart by its time and its calls.
  static Snapshot snapshot(std::int64_t second) {
    Snapshot snapshot;
    snapshot.hostname = "node7";
    snapshot.time = UnixTime{second * 1'000'000'000};
    snapshot.vendor_calls = second;
    snapshot.gpus.emplace_back();
    snapshot.gpus[0].name = std::string("Fake");
    return snapshot;
  }
  void record(std::int64_t from, std::int64_t to, RecordingOptions options = {}) {
    auto writer = RecordingWriter::open(file_, options);
    ASSERT_TRUE(writer) << writer.error().message();
    for (std::int64_t second = from; second < to; ++second) ASSERT_TRUE(writer->append(snapshot(second)));
  }
  static std::vector<std::int64_t> rest(RecordingReader& reader) {
    std::vector<std::int64_t> seconds;
    while (true) {
      auto next = reader.next();
      EXPECT_TRUE(next) << next.error().message();
      if (!next || !*next) return seconds;
      EXPECT_EQ((*next)->time.nanoseconds, (*next)->vendor_calls * 1'000'000'000);
      seconds.push_back((*next)->vendor_calls);
    }
  }
  std::vector<std::int64_t> read() {
    auto reader = RecordingReader::open(file_);
    EXPECT_TRUE(reader) << reader.error().message();
    if (!reader) return {};
    damage_ = reader->damage();
    return rest(*reader);
  }
  std::string bytes() const {
    std::ifstream file(file_, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void write(const std::string& contents) const { std::ofstream(file_, std::ios::binary) << contents; }

  std::string folder_, file_;
  std::vector<std::string> damage_;
};

TEST_F(RecordingTest, WhatIsRecordedIsReplayedInOrder) {
  record(1, 4);
  record(4, 6);  // goes on
  EXPECT_THAT(read(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(damage_, IsEmpty());
  auto reader = RecordingReader::open(file_);
  EXPECT_EQ(reader->frames(), 5u);
  EXPECT_EQ(reader->first().nanoseconds, 1'000'000'000);
  EXPECT_EQ(reader->last().nanoseconds, 5'000'000'000);
  EXPECT_EQ(reader->size().count, static_cast<std::int64_t>(bytes().size()));
}

TEST_F(RecordingTest, SeekGivesWhatStoodAtThatTime) {
  {
    auto writer = RecordingWriter::open(file_);
    for (const std::int64_t second : {10, 20, 30}) ASSERT_TRUE(writer->append(snapshot(second)));
  }
  auto reader = RecordingReader::open(file_);
  ASSERT_TRUE(reader);
  const auto from = [&reader](std::int64_t nanoseconds) {
    reader->seek(UnixTime{nanoseconds});
    return rest(*reader);
  };
  EXPECT_THAT(from(20'000'000'000), ElementsAre(20, 30));
  EXPECT_THAT(from(29'999'999'999), ElementsAre(20, 30));
  EXPECT_THAT(from(5), ElementsAre(10, 20, 30));
  EXPECT_THAT(from(99'000'000'000), ElementsAre(30));
}

TEST_F(RecordingTest, AClockThatWasSetBackDoesNotDisturbTheOrder) {
  record(5, 8);
  record(2, 4);
  EXPECT_THAT(read(), ElementsAre(2, 3, 5, 6, 7));
}

TEST_F(RecordingTest, IsAsTheDocumentationHasIt) {
  record(1, 2);
  const std::string all = bytes();
  EXPECT_EQ(all.substr(0, 16), std::string("GWRECORD\x01\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(all.substr(24, 8), std::string("\x01\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(all.substr(48), encode_frame(snapshot(1)));
}

TEST_F(RecordingTest, BrokenOffAtAnyByteItKeepsWhatIsWhole) {
  for (const bool difference : {true, false}) {
    std::filesystem::remove(file_);
    record(1, 3);
    const std::size_t last = bytes().size();
    if (difference) std::filesystem::remove(file_), record(1, 4);
    if (!difference) record(3, 4);  // another writer begins with a whole frame
    const std::string whole = bytes();
    for (std::size_t size = last + 1; size < whole.size(); ++size) {
      write(whole.substr(0, size));
      ASSERT_THAT(read(), ElementsAre(1, 2)) << size;
      ASSERT_THAT(damage_, ElementsAre(HasSubstr("breaks off")));
    }
    auto writer = RecordingWriter::open(file_);
    ASSERT_TRUE(writer);
    EXPECT_THAT(writer->note(), HasSubstr("broke off"));
    ASSERT_TRUE(writer->append(snapshot(9)));
    EXPECT_THAT(read(), ElementsAre(1, 2, 9));
    EXPECT_THAT(damage_, IsEmpty());
  }
}

TEST_F(RecordingTest, AKilledWriterCostsNoFrameThatWasAppended) {
  int appended_pipe[2];
  ASSERT_EQ(::pipe(appended_pipe), 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    auto recording = RecordingWriter::open(file_);
    for (std::int64_t second = 1; recording && recording->append(snapshot(second)); ++second)
      if (::write(appended_pipe[1], &second, sizeof second) < 0) break;
    ::_exit(1);
  }
  ::close(appended_pipe[1]);
  std::int64_t appended = 0;
  while (appended < 300 && ::read(appended_pipe[0], &appended, sizeof appended) > 0) {
  }
  ::kill(writer, SIGKILL);
  while (::read(appended_pipe[0], &appended, sizeof appended) > 0) {
  }
  ::close(appended_pipe[0]);
  ::waitpid(writer, nullptr, 0);
  const auto seconds = read();
  ASSERT_GE(seconds.size(), static_cast<std::size_t>(appended));
  for (std::size_t i = 0; i < seconds.size(); ++i) ASSERT_EQ(seconds[i], static_cast<std::int64_t>(i) + 1);
  record(appended + 10, appended + 11);
}

TEST_F(RecordingTest, DamageInTheMiddleCostsOnlyTheFramesThatItHit) {
  for (std::int64_t second = 1; second < 6; ++second) record(second, second + 1);  // each stands for itself
  const std::size_t frame = encode_frame(snapshot(2)).size();
  std::string damaged = bytes();
  damaged[48 + frame + 30] ^= 1;      // in the contents of the second
  damaged[48 + 3 * frame + 17] ^= 1;  // in the length of the fourth
  write(damaged);
  EXPECT_THAT(read(), ElementsAre(1, 3, 5));
  EXPECT_THAT(damage_, SizeIs(2));
  EXPECT_THAT(damage_[0], HasSubstr("byte " + std::to_string(48 + frame)));
}

TEST_F(RecordingTest, DamageCostsTheDifferencesThatNeedWhatItHit) {
  record(1, 11);
  const std::size_t tenth = bytes().size() - 30;
  std::filesystem::remove(file_);
  record(1, 201);
  std::string damaged = bytes();
  damaged[tenth] ^= 1;
  write(damaged);
  const auto seconds = read();
  ASSERT_EQ(seconds.size(), 9u + 136u);  // a frame in 64 stands for itself: that of second 65 is the next
  EXPECT_EQ(seconds[8], 9);
  EXPECT_EQ(seconds[9], 65);
  EXPECT_THAT(damage_, ElementsAre(HasSubstr("damaged"), HasSubstr("54 frames tell what changed")));
}

TEST_F(RecordingTest, DifferencesAreAFractionOfTheFrames) {
  auto writer = RecordingWriter::open(file_);
  Snapshot large = snapshot(1);
  large.gpus.resize(8, large.gpus[0]);
  std::size_t whole = 0;
  for (std::int64_t second = 1; second <= 64; ++second) {
    large.time = UnixTime{second * 1'000'000'000};
    large.vendor_calls = second;
    for (Gpu& gpu : large.gpus) gpu.power = Watts{static_cast<double>(300 + second % 7)};
    ASSERT_TRUE(writer->append(large));
    whole += encode_frame(large).size();
  }
  EXPECT_LT(static_cast<std::size_t>(writer->bytes_written().count) * 4, whole);
  EXPECT_THAT(read(), SizeIs(64));
}

TEST_F(RecordingTest, AFileThatLooksLikeFramesEverywhereIsReadInTime) {
  record(1, 2);
  std::string bytes_of_file = bytes();
  std::string heads;
  while (heads.size() < 4'000'000) heads += std::string("GWFR\x01\0\0\0........\0\0\x10\0", 20);  // each claims 1 MiB
  write(bytes_of_file + heads);
  EXPECT_THAT(read(), ElementsAre(1));
  EXPECT_THAT(damage_, SizeIs(1));
}

TEST_F(RecordingTest, AForeignFileIsRefusedAndLeftAsItIs) {
  for (const std::string& foreign : {std::string("my thesis"), std::string(4096, 'x'), std::string("GWRECORD")}) {
    write(foreign);
    const auto writer = RecordingWriter::open(file_);
    ASSERT_FALSE(writer);
    EXPECT_EQ(writer.error().code, ErrorCode::bad_input);
    EXPECT_THAT(writer.error().message(), HasSubstr("not a recording"));
    EXPECT_EQ(bytes(), foreign);
    EXPECT_FALSE(RecordingReader::open(file_));
  }
  EXPECT_FALSE(RecordingWriter::open(folder_));
  EXPECT_EQ(RecordingReader::open(folder_ + "/none").error().code, ErrorCode::not_found);
}

TEST_F(RecordingTest, ANewerFormatIsNotTouched) {
  record(1, 2);
  std::string newer = bytes();
  newer[8] = 2;
  write(newer);
  EXPECT_EQ(RecordingWriter::open(file_).error().code, ErrorCode::unsupported);
  EXPECT_EQ(RecordingReader::open(file_).error().code, ErrorCode::unsupported);
  EXPECT_EQ(bytes(), newer);
}

TEST_F(RecordingTest, AnotherHostIsRefused) {
  record(1, 2);
  auto writer = RecordingWriter::open(file_);
  Snapshot other = snapshot(2);
  other.simulated = "8xh100";
  ASSERT_FALSE(writer->append(other));
  EXPECT_THAT(writer->append(other).error().message(), HasSubstr("of the host node7, not of the simulation 8xh100"));
  EXPECT_TRUE(writer->append(snapshot(2)));
}

TEST_F(RecordingTest, ASecondWriterIsRefused) {
  auto first = RecordingWriter::open(file_);
  ASSERT_TRUE(first);
  const auto second = RecordingWriter::open(file_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("another program is writing to it"));
}

TEST_F(RecordingTest, GrowingItDropsTheOldestPart) {
  RecordingOptions small;
  small.max_size = kSmallestRecording;
  record(1, 2001, small);
  std::uintmax_t total = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) total += entry.file_size();
  EXPECT_LE(total, static_cast<std::uintmax_t>(small.max_size.count));
  const auto seconds = read();
  EXPECT_THAT(damage_, IsEmpty());
  EXPECT_EQ(seconds.back(), 2000);
  EXPECT_GT(total, static_cast<std::uintmax_t>(small.max_size.count / 2));
  for (std::size_t i = 1; i < seconds.size(); ++i) ASSERT_EQ(seconds[i], seconds[i - 1] + 1);
  record(2001, 2011, small);
  EXPECT_EQ(read().back(), 2010);
}

TEST_F(RecordingTest, FilesOfOthersAreNotTakenForParts) {
  std::ofstream(file_ + ".1") << "precious";
  const auto writer = RecordingWriter::open(file_);
  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().message(), HasSubstr("move it away"));
  std::filesystem::remove(file_ + ".1");
  record(1, 3);
  std::ofstream(file_ + ".1") << "precious";
  EXPECT_THAT(read(), ElementsAre(1, 2));
}

TEST_F(RecordingTest, AFrameThatDoesNotFitIsRefused) {
  RecordingOptions small;
  small.max_size = Bytes{1000};
  EXPECT_FALSE(RecordingWriter::open(file_, small));
  small.max_size = kSmallestRecording;
  auto writer = RecordingWriter::open(file_, small);
  Snapshot large = snapshot(1);
  large.gpus.resize(500);
  EXPECT_THAT(writer->append(large).error().message(), HasSubstr("allow a larger recording"));
  EXPECT_TRUE(writer->append(snapshot(2)));
}

// A limit on the size of files stands in for a disk that is full: the write ends in the middle of a frame.
TEST_F(RecordingTest, AFullDiskIsToldAndTheFileStaysWhole) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    auto writer = RecordingWriter::open(file_);
    if (!writer) ::_exit(2);
    for (std::int64_t second = 1; second <= 3; ++second)
      if (!writer->append(snapshot(second))) ::_exit(2);
    const rlimit limit{static_cast<rlim_t>(48 + writer->bytes_written().count + 10), RLIM_INFINITY};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
    const Status status = writer->append(snapshot(4));
    if (status || status.error().code != ErrorCode::unavailable || status.error().hint != "make room on the disk")
      ::_exit(3);
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};  // room was made
    if (::setrlimit(RLIMIT_FSIZE, &none) != 0 || !writer->append(snapshot(5))) ::_exit(4);
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(read(), ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(damage_, IsEmpty());
}

}  // namespace
}  // namespace gpuwright::device
