#include "doctor/fatbin/fatbin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "doctor/testing/elf_builder.h"

namespace gpuwright::doctor {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names(const std::vector<GpuCode>& codes) {
  std::vector<std::string> result;
  for (const GpuCode code : codes) result.push_back(to_string(code));
  return result;
}

Fatbins read(const std::string& bytes) {
  const auto source = bytes_in_memory(bytes, "x.fatbin");
  const auto found = read_fatbins(*source, 0, source->size());
  EXPECT_TRUE(found) << found.error().message();
  return found ? *found : Fatbins{};
}

GpuCode code(std::string_view name) {
  return gpu_code_named(name).value();
}

// The first 80 bytes of what `fatbinary --64 --image3=kind=KIND,sm=SM,file=F --create=X` (13.5.37) writes for an empty
// kernel of ptxas; the code itself is zeros here, which nothing reads.
std::string written_by_fatbinary(std::string_view header, std::size_t bytes) {
  std::string file;
  for (std::size_t i = 0; i + 1 < header.size(); i += 2) {
    file.push_back(static_cast<char>(std::stoi(std::string(header.substr(i, 2)), nullptr, 16)));
  }
  file.resize(bytes, '\0');
  return file;
}

TEST(Fatbin, ReadsWhatFatbinaryWrites) {
  const std::string sm_75 = written_by_fatbinary(
      "50ed55ba01001000680b000000000000020001014000000028"
      "0b00000000000000000000000000000800"
      "01004b00000000000000000000001100000000000000",
      2936);
  const std::string sm_90a = written_by_fatbinary(
      "50ed55ba01001000a80c000000000000020001014000000068"
      "0c00000000000000000000000000000800"
      "01005a00000000000000000000001100100000000000",
      3256);
  const std::string sm_100f = written_by_fatbinary(
      "50ed55ba010010006813000000000000"
      "0200010178000000f012000000000000"
      "00000000400000000800010064000000"
      "00000000000000001100200100000000",
      4984);
  const std::string compute_90 = written_by_fatbinary(
      "50ed55ba01001000a800000000000000"
      "01000101500000005800000000000000"
      "5300000040000000080008005a000000"
      "00000000000000001180000000000000",
      184);
  EXPECT_THAT(names(read(sm_75).usual()), ElementsAre("sm_75"));
  EXPECT_THAT(names(read(sm_90a).usual()), ElementsAre("sm_90a"));
  EXPECT_THAT(names(read(sm_100f).usual()), ElementsAre("sm_100f"));
  EXPECT_THAT(names(read(compute_90).usual()), ElementsAre("compute_90"));
  const Fatbins all = read(sm_75 + sm_90a + sm_100f + compute_90);
  EXPECT_EQ(all.containers, 4);
  EXPECT_TRUE(all.complete);
  EXPECT_THAT(names(all.usual()), ElementsAre("sm_75", "sm_90a", "sm_100f", "compute_90"));
}

TEST(Fatbin, ReadsALibrary) {
  const auto source =
      bytes_in_memory(testing::build_elf_from("soname=libk.so sm=70,80 ptx=80 containers=3"), "libk.so");
  const auto elf = ElfFile::open(*source);
  ASSERT_TRUE(elf);
  const auto found = read_fatbins(*elf);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->containers, 3);
  ASSERT_EQ(found->codes.size(), 3U);
  EXPECT_EQ(found->codes[0].count, 3);
  EXPECT_THAT(names(found->usual()), ElementsAre("sm_70", "sm_80", "compute_80"));
  EXPECT_EQ(found->coverage(61), Coverage::none);
  EXPECT_EQ(found->coverage(75), Coverage::native);
  EXPECT_EQ(found->coverage(89), Coverage::native);
  EXPECT_EQ(found->coverage(90), Coverage::compiled_when_loaded);
}

// torch 2.9 has sm_90a code for a few kernels: it does not make the library one for Hopper.
TEST(Fatbin, AFewKernelsDoNotSpeakForTheLibrary) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += testing::build_fatbin({code("sm_80")});
  bytes += testing::build_fatbin({code("sm_80"), code("sm_90a")});
  const Fatbins found = read(bytes);
  EXPECT_EQ(found.codes.size(), 2U);
  EXPECT_EQ(found.coverage(90), Coverage::none);
}

// NVIDIA CUDA C++ Programming Guide: which cubin and which PTX runs where. The list of PyTorch's wheels serves as an
// example: sm_60 for a GTX 1080 (6.1), sm_86 for an RTX 4090 (8.9), sm_120 for GB10 (12.1), none for Jetson's own.
TEST(Fatbin, KnowsWhatRunsWhere) {
  EXPECT_TRUE(runs_on(code("sm_60"), 61));
  EXPECT_TRUE(runs_on(code("sm_86"), 89));
  EXPECT_TRUE(runs_on(code("sm_120"), 121));
  EXPECT_TRUE(runs_on(code("sm_87"), 87));
  EXPECT_FALSE(runs_on(code("sm_86"), 87));
  EXPECT_FALSE(runs_on(code("sm_87"), 89));
  EXPECT_FALSE(runs_on(code("sm_86"), 80));
  EXPECT_FALSE(runs_on(code("sm_80"), 90));
  EXPECT_FALSE(runs_on(code("sm_90a"), 100));
  EXPECT_TRUE(runs_on(code("compute_80"), 120));
  EXPECT_FALSE(runs_on(code("compute_90a"), 100));
  EXPECT_FALSE(runs_on(code("compute_90"), 89));
  EXPECT_TRUE(runs_on(code("sm_100f"), 103));
  EXPECT_FALSE(runs_on(code("sm_100a"), 103));
}

TEST(Fatbin, BoundsItsWork) {
  std::string bytes;
  for (int i = 0; i < 50; ++i) bytes += testing::build_fatbin({code("sm_80"), code("sm_90")});
  const auto source = bytes_in_memory(bytes, "many");
  const auto few = read_fatbins(*source, 0, source->size(), {10, 1 << 20});
  ASSERT_TRUE(few);
  EXPECT_FALSE(few->complete);
  EXPECT_EQ(few->codes[0].count + few->codes[1].count, 10);
  EXPECT_FALSE(read_fatbins(*source, 0, source->size() + 1));
  EXPECT_FALSE(read_fatbins(*source, -1, 10));
}

TEST(Fatbin, SaysWhenAContainerIsCutOff) {
  std::string bytes = testing::build_fatbin({code("sm_80"), code("sm_90")});
  bytes.resize(bytes.size() - 8);
  EXPECT_FALSE(read(bytes).complete);
}

TEST(GpuCode, IsWrittenAsNvccWritesIt) {
  for (const char* name : {"sm_50", "sm_90a", "sm_100f", "compute_120", "compute_103a"}) {
    EXPECT_EQ(to_string(code(name)), name);
  }
  for (const char* name : {"", "sm_", "sm_9", "sm_90b", "gfx90a", "sm_-90", "sm_90aa", "compute_"}) {
    EXPECT_FALSE(gpu_code_named(name)) << name;
  }
}

}  // namespace
}  // namespace gpuwright::doctor
