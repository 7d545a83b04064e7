#include "row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuwright::scorer {
namespace {

using testing::HasSubstr;

constexpr std::string_view kHeader =
    "id\tsource\tengine\tengine_version\tmodel\tarch\tmode\tsettings\tcomponent\twhere\tmeter\tvalue_low_bytes\t"
    "value_high_bytes\tunit_note\tgrade\tusable\tnote\n";

Result<Table> read(std::string lines) {
  return read_table(*bytes_in_memory(std::string(kHeader) + std::move(lines), "table.tsv"));
}

std::string line_with(std::string_view arch, std::string_view settings, std::string_view low, std::string_view high) {
  return "r-1\ts\tvllm\t\tm\t" + std::string(arch) + "\tinference\t" + std::string(settings) +
         "\tbudget\tgpu\tbudget\t" + std::string(low) + "\t" + std::string(high) + "\tGiB\tA\tyes\tsecret\n";
}

TEST(ReadTable, ReadsFactsAndInterval) {
  const auto table = read(line_with("params=46.70e9,layers=32", "util=0.9;gpu_mem=10-20", "-100", "-90"));
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 1u);
  const Row& row = table->rows[0];
  EXPECT_EQ(*row.arch.integer("params"), 46'700'000'000);
  EXPECT_EQ(*row.settings.number("util"), 0.9);
  EXPECT_EQ(row.measured.low, -100);
  EXPECT_EQ(row.measured.high, -90);
}

TEST(ReadTable, AnOpenUpperBoundIsAllowedAnEmptyIntervalIsNot) {
  EXPECT_FALSE(read(line_with("", "", "5", ""))->rows.at(0).measured.high);
  const auto table = read(line_with("", "", "", ""));
  ASSERT_EQ(table->refusals.size(), 1u);
  EXPECT_THAT(table->refusals[0].reason, HasSubstr("interval is empty"));
}

TEST(ReadTable, MalformedLinesAreNamedWithTheirReason) {
  const auto reason = [](std::string line) { return read(std::move(line))->refusals.at(0).reason; };
  EXPECT_THAT(reason("r-1\tonly\tthree\n"), HasSubstr("fields"));
  EXPECT_THAT(reason(line_with("", "ubatsh=512", "1", "2")), HasSubstr("did you mean \"ubatch\""));
  EXPECT_THAT(reason(line_with("layers", "", "1", "2")), HasSubstr("not key=value"));
  EXPECT_THAT(reason(line_with("", "ctx=1;ctx=2", "1", "2")), HasSubstr("twice"));
  EXPECT_THAT(reason(line_with("", "", "2", "1")), HasSubstr("ends before"));
  EXPECT_THAT(reason(line_with("", "", "nan", "1")), HasSubstr("whole number"));
  EXPECT_THAT(reason(line_with("", "", "1e300", "1")), HasSubstr("larger"));
}

TEST(ReadTable, NeedsAHeaderWithItsColumns) {
  EXPECT_FALSE(read_table(*bytes_in_memory("", "empty.tsv")));
  const auto table = read_table(*bytes_in_memory("id\tmodel\n", "short.tsv"));
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message(), HasSubstr("no column"));
}

TEST(ParseRange, TakesNegativeEndsAndSingleValues) {
  EXPECT_EQ(parse_range("8194621440-8194621440")->low, 8194621440);
  EXPECT_EQ(parse_range("-5-7")->low, -5);
  EXPECT_EQ(parse_range("7")->high, 7);
  EXPECT_FALSE(parse_range("7-"));
  EXPECT_FALSE(parse_range("9-7"));
  EXPECT_FALSE(parse_range(""));
}

}  // namespace
}  // namespace gpuwright::scorer
