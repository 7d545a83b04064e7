// The accuracy that is promised, kept: predictions against bench/testdata/published.tsv, public measurements each
// with its source. What each bound is and what the misses are: docs/accuracy.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "report.h"

namespace gpuwright::scorer {
namespace {

class Published : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto file = open_file(GPUWRIGHT_SOURCE_DIR "/bench/testdata/published.tsv");
    ASSERT_TRUE(file) << file.error().message();
    table_ = new Table(read_table(**file).value());
    const auto catalog = catalog::Catalog::load();
    ASSERT_TRUE(catalog) << catalog.error().message();
    assessments_ = new std::vector<Assessment>(assess(*table_, *catalog));
  }
  static void TearDownTestSuite() {
    delete assessments_;
    delete table_;
  }

  static Summary summary(Group group) { return summaries(*assessments_)[static_cast<std::size_t>(group)]; }

  // Every row of the group errs by at most `most`, but for the named ones.
  static void expect_none_worse(Group group, double most, const std::set<std::string>& named) {
    for (const Assessment& assessment : *assessments_) {
      if (assessment.group != group || !assessment.answer || named.contains(assessment.row->id)) continue;
      EXPECT_LE(assessment.score.error, most) << assessment.row->id;
    }
  }

  static Table* table_;
  static std::vector<Assessment>* assessments_;
};
Table* Published::table_ = nullptr;
std::vector<Assessment>* Published::assessments_ = nullptr;

TEST_F(Published, EveryLineIsWellFormed) {
  EXPECT_TRUE(table_->refusals.empty());
  EXPECT_GE(table_->rows.size(), 170u);
}

TEST_F(Published, ATableCutAnywhereIsReadOrRefused) {
  const std::string text =
      read_file(GPUWRIGHT_SOURCE_DIR "/bench/testdata/published.tsv", std::int64_t{1} << 24).value();
  for (std::size_t length = 0; length < text.size(); length += 97) {
    const auto table = read_table(*bytes_in_memory(text.substr(0, length), "cut.tsv"));
    if (!table) continue;
    EXPECT_LE(table->refusals.size(), 1u) << length;
  }
}

TEST_F(Published, WeightsAreWithinAFifthOfAPercent) {
  EXPECT_LE(summary(Group::weights).median_error, 0.002);
  expect_none_worse(Group::weights, 0.015, {});
}

TEST_F(Published, CachesAreWithinAFifthOfAPercent) {
  EXPECT_LE(summary(Group::kv).median_error, 0.002);
  expect_none_worse(Group::kv, 0.015, {});
  EXPECT_LE(summary(Group::recurrent).median_error, 0.002);
  expect_none_worse(Group::recurrent, 0.015, {});
}

TEST_F(Published, ComputeBuffersAreWithinAPercent) {
  EXPECT_LE(summary(Group::compute).median_error, 0.01);
}

TEST_F(Published, BlocksFollowFromTheBudget) {
  expect_none_worse(Group::blocks, 0.005, {});
}

TEST_F(Published, TotalsAreNearAndTheirBandsHonest) {
  const Summary total = summary(Group::inference_total);
  EXPECT_LE(total.median_error, 0.02);
  EXPECT_LE(total.p90_error, 0.08);
  EXPECT_GE(total.coverage, 0.9);
  for (const Assessment& assessment : *assessments_) {
    if (assessment.group != Group::inference_total || !assessment.answer) continue;
    EXPECT_LE(assessment.score.band, 0.15) << assessment.row->id;
  }
}

TEST_F(Published, TrainingTotalsAreNearAndTheirBandsHonest) {
  for (const Group group : {Group::full_total, Group::lora_total, Group::qlora_total}) {
    const Summary total = summary(group);
    EXPECT_GE(total.rows, 30u) << name_of(group);
    EXPECT_LE(total.median_error, 0.06) << name_of(group);
    EXPECT_LE(total.p90_error, 0.18) << name_of(group);
    EXPECT_GE(total.coverage, 0.9) << name_of(group);
    // sw-034: lengths vary under a cap; tt-008 and fq-001: docs/accuracy.md.
    expect_none_worse(group, 0.2, {"sw-034", "tt-008", "fq-001"});
    for (const Assessment& assessment : *assessments_) {
      if (assessment.group != group || !assessment.answer) continue;
      EXPECT_LE(assessment.score.band, 0.2) << assessment.row->id;
    }
  }
}

TEST_F(Published, LongestSequencesOfUnsloth) {
  const Summary longest = summary(Group::max_context);
  EXPECT_LE(longest.median_error, 0.06);
  EXPECT_GE(longest.coverage, 0.9);
}

}  // namespace
}  // namespace gpuwright::scorer
