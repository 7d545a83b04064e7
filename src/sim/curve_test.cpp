#include "sim/curve.h"

#include <gtest/gtest.h>

#include <numbers>

namespace gpuwright::sim {
namespace {

TEST(Curve, ConstantHasALineAsIntegral) {
  const Curve curve = Curve::constant(3);
  EXPECT_DOUBLE_EQ(curve.at(-5), 3);
  EXPECT_DOUBLE_EQ(curve.at(1e6), 3);
  EXPECT_DOUBLE_EQ(curve.integral(4), 12);
  EXPECT_DOUBLE_EQ(curve.integral(-4), -12);
  EXPECT_DOUBLE_EQ(curve.mean(-1, 7), 3);
}

TEST(Curve, SineStartsAtItsMeanAndComesBack) {
  const Curve curve = Curve::sine(0.2, 0.8, 40, 0);
  EXPECT_DOUBLE_EQ(curve.at(0), 0.5);
  EXPECT_DOUBLE_EQ(curve.at(10), 0.8);
  EXPECT_NEAR(curve.at(30), 0.2, 1e-12);
  EXPECT_NEAR(curve.mean(0, 40), 0.5, 1e-12);
  // Half a wave of amplitude 0.3: 2/pi of it is the mean.
  EXPECT_NEAR(curve.mean(0, 20), 0.5 + 0.3 * 2 / std::numbers::pi, 1e-12);
}

TEST(Curve, StepJumpsAndRepeats) {
  const Curve curve = Curve::through({{0, 1}, {4, 1}, {4, 0}, {10, 0}}, 10);
  EXPECT_DOUBLE_EQ(curve.at(3.99), 1);
  EXPECT_DOUBLE_EQ(curve.at(4), 0);
  EXPECT_DOUBLE_EQ(curve.at(13), 1);
  EXPECT_DOUBLE_EQ(curve.at(-1), 0);
  EXPECT_DOUBLE_EQ(curve.integral(10), 4);
  EXPECT_DOUBLE_EQ(curve.integral(32), 14);
  EXPECT_DOUBLE_EQ(curve.integral(-10), -4);
}

TEST(Curve, PointsHoldTheirEnds) {
  const Curve curve = Curve::through({{10, 0}, {20, 1}}, 0);
  EXPECT_DOUBLE_EQ(curve.at(0), 0);
  EXPECT_DOUBLE_EQ(curve.at(15), 0.5);
  EXPECT_DOUBLE_EQ(curve.at(100), 1);
  EXPECT_DOUBLE_EQ(curve.integral(30), 15);
}

TEST(Curve, ShiftAndScaleKeepTheIntegralInStep) {
  const Curve curve = Curve::through({{0, 0}, {10, 1}}, 0).shifted(5).scaled(2);
  EXPECT_DOUBLE_EQ(curve.at(5), 0);
  EXPECT_DOUBLE_EQ(curve.at(10), 1);
  EXPECT_DOUBLE_EQ(curve.integral(15), 10);
}

}  // namespace
}  // namespace gpuwright::sim
