#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "cli/live/stat_json.h"
#include "cli/live/stat_text.h"
#include "cli/live/stream.h"
#include "cli/live/testing/machines.h"
#include "cli/live/values.h"

namespace gpuwright::cli {
namespace {

using device::Why;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Shape {
  int width = 80;
  bool wide = false;
  std::optional<int> height = {};
  bool color = false;
};

std::string text_of(const device::Snapshot& snapshot, const Shape& shape) {
  std::ostringstream out, err;
  Console console{out, err};
  console.width = shape.width;
  console.wide = shape.wide;
  console.color = shape.color;
  console.unicode = true;
  print_stat(snapshot, {shape.height, true, ""}, console);
  return out.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::string_view line : split(text, '\n')) lines.emplace_back(line);
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::string line_with(const std::string& text, std::string_view part) {
  for (const std::string& line : lines_of(text))
    if (line.find(part) != std::string::npos) return line;
  return {};
}

const Json& at(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  static const Json kNull;
  EXPECT_NE(found, nullptr) << key;
  return found ? *found : kNull;
}

// gpustat#54: four fifths of a core go into starting the driver for every question.
TEST(StatText, UnusedGpusWithoutPersistenceModeHaveAHint) {
  device::Snapshot snapshot = testing::two_gpus();
  for (device::Gpu& gpu : snapshot.gpus) {
    gpu.persistence_mode = false;
    gpu.display_active = false;
  }
  EXPECT_THAT(text_of(snapshot, {160}), Not(HasSubstr("GPU 0: persistence mode")));  // in use
  snapshot.processes.clear();
  EXPECT_THAT(text_of(snapshot, {160}), HasSubstr("nvidia-smi -pm 1"));
  for (device::Gpu& gpu : snapshot.gpus) gpu.display_active = true;
  EXPECT_THAT(text_of(snapshot, {160}), Not(HasSubstr("nvidia-smi -pm 1")));
}

TEST(StatText, ShowsAGpuInOneLine) {
  const std::string text = text_of(testing::two_gpus(), {100});
  EXPECT_THAT(text, HasSubstr("NVIDIA 580.95.05, CUDA 13.0"));
  const std::string line = line_with(text, "  0  H100");
  EXPECT_THAT(line, HasSubstr("70.5/80.0"));
  EXPECT_THAT(line, HasSubstr("97%"));
  EXPECT_THAT(line, HasSubstr("612/700W"));
  EXPECT_THAT(line, HasSubstr("64C"));
  EXPECT_THAT(line, Not(HasSubstr("n/a")));
}

// Issue of several monitors: 16 GPUs do not fit a terminal of 80 by 24.
TEST(StatText, SixteenGpusFitEightyByTwentyFour) {
  const std::string text = text_of(testing::many_gpus(16), {80, false, 23});
  const auto lines = lines_of(text);
  EXPECT_LE(lines.size(), 23u);
  for (const std::string& line : lines) EXPECT_LE(display_width(line), 80) << line;
  for (int gpu = 0; gpu < 16; ++gpu) {
    const std::string line = line_with(text, (gpu < 10 ? "  " : " ") + std::to_string(gpu) + "  H100");
    EXPECT_THAT(line, HasSubstr("70.5/80.0")) << gpu;
    EXPECT_THAT(line, HasSubstr("97%")) << gpu;
  }
  EXPECT_THAT(text, HasSubstr("more"));
}

TEST(StatText, WidthNeverOverflows) {
  for (const int width : {40, 60, 80, 100, 120, 200})
    for (const std::string& line : lines_of(text_of(testing::two_gpus(), {width, false, 24})))
      EXPECT_LE(display_width(line), width) << line;
}

TEST(StatText, AWiderTerminalShowsMore) {
  const std::string narrow = text_of(testing::two_gpus(), {80}), wide = text_of(testing::two_gpus(), {200});
  EXPECT_THAT(narrow, Not(HasSubstr("reserved")));
  EXPECT_THAT(wide, HasSubstr("reserved"));
  EXPECT_THAT(wide, HasSubstr("1755"));
}

TEST(StatText, ALostGpuKeepsItsRowWithTheReason) {
  device::Snapshot snapshot = testing::two_gpus();
  snapshot.gpus[0].state = device::State::lost;
  snapshot.gpus[0].state_detail = "the GPU fell off the bus; restart the machine";
  const std::string text = text_of(snapshot, {80});
  EXPECT_THAT(line_with(text, "  0  H100"), HasSubstr("lost: the GPU fell off"));
  EXPECT_THAT(text, Not(HasSubstr("GPU 0: lost")));
  EXPECT_THAT(text_of(snapshot, {60}), HasSubstr("GPU 0: lost: the GPU fell off the bus; restart the"));
  EXPECT_THAT(line_with(text, "  1  H100"), HasSubstr("20.0/80.0"));
}

TEST(StatText, UnknownIsNotAvailableAndSaysWhy) {
  device::Snapshot snapshot = testing::two_gpus();
  snapshot.gpus[0].utilization = Why::in_mig_mode;
  const std::string text = text_of(snapshot, {100});
  EXPECT_THAT(line_with(text, "  0  H100"), HasSubstr("n/a"));
  EXPECT_THAT(text, HasSubstr("GPU 0: utilization n/a: in MIG mode"));
}

TEST(StatText, MemoryThatNoProcessHoldsHasARow) {
  const std::string text = text_of(testing::two_gpus(), {100});
  EXPECT_THAT(line_with(text, "8.0 GiB"), HasSubstr("held by no process"));
}

TEST(StatText, SimulatedIsTheFirstWord) {
  device::Snapshot snapshot = testing::two_gpus();
  EXPECT_THAT(text_of(snapshot, {80}), Not(HasSubstr("SIMULATED")));
  snapshot.simulated = "8xh100";
  EXPECT_EQ(text_of(snapshot, {80}).find("SIMULATED (8xh100)"), 0u);
}

TEST(StatText, EscapeSequencesOfNamesAreVisible) {
  device::Snapshot snapshot = testing::two_gpus();
  snapshot.gpus[0].name = std::string("H100\033[31m");
  snapshot.gpus[1].state = device::State::failed;
  snapshot.gpus[1].state_detail = "\033]0;title\a";
  snapshot.processes[0].command = std::string("a\033[2Jb");
  snapshot.hostname = "h\033[1m";
  const std::string text = text_of(snapshot, {120});
  EXPECT_EQ(text.find('\033'), std::string::npos) << text;
}

TEST(StatText, UnifiedMemoryTellsBothHolders) {
  device::Snapshot snapshot = testing::two_gpus();
  snapshot.gpus[0].unified_memory = true;
  snapshot.gpus[0].host_used = Bytes::from_gib(4);
  EXPECT_THAT(text_of(snapshot, {100}), HasSubstr("the GPU holds 70.5 GiB, the rest of the machine 4.0 GiB"));
}

TEST(StatText, RemarksOfTheSameWordsAreOne) {
  device::Snapshot snapshot = testing::many_gpus(4);
  for (device::Gpu& gpu : snapshot.gpus)
    gpu.throttle_reasons = device::ThrottleReasons{device::throttle::kHardwareThermal | device::throttle::kIdle};
  snapshot.gpus[2].throttle_reasons = device::ThrottleReasons{};
  const auto remarks = remarks_on(snapshot);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].text, "GPUs 0-1, 3: clocks are held down: hardware thermal slowdown");
  EXPECT_TRUE(remarks[0].bad);
}

TEST(StatJson, NullHasItsReason) {
  const Json answer = stat_json(testing::two_gpus());
  EXPECT_EQ(*at(answer, "schema").as_string(), "gpuwright.stat/1");
  EXPECT_EQ(*at(answer, "time").as_string(), "2026-11-30T21:00:00.000Z");
  EXPECT_TRUE(at(answer, "simulated").is_null());
  const Json& gpu = at(answer, "gpus").items().at(0);
  EXPECT_EQ(*at(gpu, "memory_used_bytes").as_int(), 75698798592);
  EXPECT_EQ(*at(gpu, "memory_unattributed_bytes").as_int(), 536870912);
  EXPECT_TRUE(at(gpu, "fan_ratio").is_null());
  EXPECT_EQ(*at(at(gpu, "unknown"), "fan_ratio").as_string(), "not supported");
  EXPECT_EQ(*at(at(gpu, "unknown"), "serial").as_string(), "not read");
  const Json& process = at(answer, "processes").items().at(0);
  EXPECT_EQ(*at(process, "pod").as_string(), "train-0");
  EXPECT_EQ(*at(at(process, "unknown"), "cpu_ratio").as_string(), "needs two samples");
}

TEST(StatJson, FieldsAreWhatWasAskedFor) {
  const auto fields = parse_fields("power_watts, utilization_ratio");
  ASSERT_TRUE(fields.has_value());
  const Json answer = stat_json(testing::two_gpus(), *fields);
  EXPECT_EQ(at(answer, "gpus").items().at(0).dump(0),
            R"({"index": 0, "power_watts": 612.4, "utilization_ratio": 0.97, "unknown": {}})");
}

TEST(StatFields, NearestNameAndThatOfNvidiaSmi) {
  const auto wrong = parse_fields("power_wats");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().hint, HasSubstr("power_watts"));
  const auto theirs = parse_fields("utilization.gpu");
  ASSERT_FALSE(theirs.has_value());
  EXPECT_THAT(theirs.error().hint, HasSubstr("utilization_ratio"));
}

// RFC 4180, section 2: quotes around fields with commas, quotes doubled.
TEST(StatCsv, ALineAGpuAndTheSimulationInAColumn) {
  device::Snapshot snapshot = testing::two_gpus();
  snapshot.simulated = "8xh100";
  snapshot.gpus[0].name = std::string("odd, \"name\"");
  const std::vector<std::string> fields = {"index", "name", "fan_ratio"};
  EXPECT_EQ(stat_csv_header(snapshot, fields), "time,index,name,fan_ratio,simulated\n");
  EXPECT_EQ(stat_csv_lines(snapshot, fields),
            "2026-11-30T21:00:00.000Z,0,\"odd, \"\"name\"\"\",,8xh100\n"
            "2026-11-30T21:00:00.000Z,1,NVIDIA H100 80GB HBM3,,8xh100\n");
}

// As `nvidia-smi dmon` of driver 535 and later prints it; with -s pcut the groups stand in that order.
TEST(Stream, HasTheColumnsOfDmon) {
  EXPECT_EQ(gpu_stream_header("puc"),
            "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk\n"
            "# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz\n");
  EXPECT_EQ(gpu_stream_header("pcut"),
            "# gpu    pwr  gtemp  mtemp   mclk   pclk     sm    mem    enc    dec    jpg    ofa  rxpci  txpci\n"
            "# Idx      W      C      C    MHz    MHz      %      %      %      %      %      %   MB/s   MB/s\n");
  EXPECT_EQ(gpu_stream_header("pum"),
            "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa     fb   bar1   ccpm\n"
            "# Idx      W      C      C      %      %      %      %      %      %     MB     MB     MB\n");
  device::Snapshot snapshot = testing::two_gpus();
  snapshot.gpus.pop_back();
  EXPECT_EQ(gpu_stream_lines(snapshot, "puc"),
            "    0    612     64      -     97     41      0      0      -      -   2619   1755\n");
}

// As `nvidia-smi pmon` and `pmon -s um` of driver 535 and later print them.
TEST(Stream, HasTheColumnsOfPmon) {
  EXPECT_EQ(process_stream_header("um"),
            "# gpu         pid   type     sm    mem    enc    dec    jpg    ofa     fb   ccpm    command\n"
            "# Idx           #    C/G      %      %      %      %      %      %     MB     MB    name\n");
  device::Snapshot snapshot = testing::two_gpus();
  snapshot.processes.pop_back();
  EXPECT_EQ(process_stream_lines(snapshot, "u"),
            "    0        4711      C     95     40      0      0      -      -    python3.11\n"
            "    1           -      -      -      -      -      -      -      -    -\n");
  EXPECT_FALSE(check_process_groups("p").has_value());
}

TEST(Values, Durations) {
  EXPECT_EQ(duration_text(42), "42s");
  EXPECT_EQ(duration_text(187), "3:07");
  EXPECT_EQ(duration_text(8099), "2:14:59");
  EXPECT_EQ(duration_text(4 * 86400 + 3600), "4d 01:00");
  EXPECT_EQ(duration_text(-5), "0s");
}

}  // namespace
}  // namespace gpuwright::cli
