#include "score.h"

#include <gtest/gtest.h>

#include "report.h"

namespace gpuwright::scorer {
namespace {

TEST(Score, InsideTheIntervalIsNoError) {
  const Score inside = score({90, 100, 110}, {99, 101});
  EXPECT_EQ(inside.error, 0);
  EXPECT_TRUE(inside.covered);
  EXPECT_DOUBLE_EQ(inside.band, 0.1);
}

TEST(Score, OutsideIsTheDistanceToTheNearestBoundOverThatBound) {
  EXPECT_DOUBLE_EQ(score({90, 90, 90}, {100, 120}).error, 0.1);
  EXPECT_DOUBLE_EQ(score({150, 150, 150}, {100, 120}).error, 0.25);
  EXPECT_FALSE(score({150, 150, 150}, {100, 120}).covered);
  EXPECT_TRUE(score({119, 150, 160}, {100, 120}).covered);
}

TEST(Score, NegativeBudgetsAndOpenBounds) {
  EXPECT_DOUBLE_EQ(score({-120, -120, -120}, {-110, -100}).error, 10.0 / 110.0);
  EXPECT_EQ(score({500, 500, 500}, {100, std::nullopt}).error, 0);
  EXPECT_TRUE(score({500, 500, 500}, {100, std::nullopt}).covered);
  EXPECT_DOUBLE_EQ(score({5, 5, 5}, {-1, 0}).error, 1);
}

// numpy.percentile([1, 2, 3, 4, 10], [50, 90]) -> 3.0, 7.6
TEST(Percentile, InterpolatesAsNumpyDoes) {
  EXPECT_DOUBLE_EQ(percentile({10, 1, 4, 2, 3}, 0.5), 3.0);
  EXPECT_DOUBLE_EQ(percentile({10, 1, 4, 2, 3}, 0.9), 7.6);
  EXPECT_DOUBLE_EQ(percentile({7}, 0.9), 7);
}

TEST(Groups, FollowComponentAndMode) {
  Row row;
  row.mode = "inference";
  row.component = "total-peak";
  EXPECT_EQ(group_of(row, false), Group::inference_total);
  row.mode = "qlora";
  EXPECT_EQ(group_of(row, false), Group::qlora_total);
  row.mode = "dora";
  EXPECT_EQ(group_of(row, false), Group::lora_total);
  row.component = "compute";
  EXPECT_EQ(group_of(row, true), Group::compute);
  EXPECT_FALSE(group_of(row, false));
  row.component = "overhead";
  EXPECT_FALSE(group_of(row, true));
}

TEST(Lines, HaveTheDocumentedColumns) {
  Row row;
  row.id = "x-1";
  row.measured = {100, std::nullopt};
  const Prediction prediction{80, 90, 99};
  EXPECT_EQ(row_line(row, prediction, score(prediction, row.measured), Group::kv),
            "x-1\t80\t90\t99\t100\t-\t0.10000\t0.10556\tkv");
  EXPECT_EQ(group_line(Group::kv, {}), "kv - - - 0");
  EXPECT_EQ(group_line(Group::all, {2, 0.5, 0.25, 1}), "all 0.50000 0.25000 1.0000 2");
}

}  // namespace
}  // namespace gpuwright::scorer
