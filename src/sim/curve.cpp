#include "sim/curve.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace gpuwright::sim {

Curve Curve::constant(double value) {
  return through({{0, value}}, 0);
}

Curve Curve::sine(double low, double high, double period, double phase_seconds) {
  Curve curve;
  curve.middle_ = (low + high) / 2;
  curve.amplitude_ = (high - low) / 2;
  curve.period_ = period;
  curve.shift_ = -phase_seconds;
  return curve;
}

Curve Curve::through(std::vector<Point> points, double period) {
  Curve curve;
  curve.points_ = std::move(points);
  curve.period_ = period;
  return curve;
}

Curve Curve::shifted(double seconds) const {
  Curve curve = *this;
  curve.shift_ += seconds;
  return curve;
}

Curve Curve::scaled(double factor) const {
  Curve curve = *this;
  for (Point& point : curve.points_) point.value *= factor;
  curve.middle_ *= factor;
  curve.amplitude_ *= factor;
  return curve;
}

double Curve::at(double seconds) const {
  double time = seconds - shift_;
  if (points_.empty()) {
    if (period_ <= 0) return middle_;
    return middle_ + amplitude_ * std::sin(2 * std::numbers::pi * time / period_);
  }
  if (period_ > 0) time -= std::floor(time / period_) * period_;
  const auto next = std::upper_bound(points_.begin(), points_.end(), time,
                                     [](double value, const Point& point) { return value < point.seconds; });
  if (next == points_.begin()) return next->value;
  const Point& before = *std::prev(next);
  if (next == points_.end()) return before.value;
  const double share = (time - before.seconds) / (next->seconds - before.seconds);
  return before.value + share * (next->value - before.value);
}

double Curve::area_before(double seconds) const {
  const Point& first = points_.front();
  double area = first.value * std::min(seconds, first.seconds);
  for (std::size_t i = 1; i < points_.size() && points_[i - 1].seconds < seconds; ++i) {
    const Point &from = points_[i - 1], &to = points_[i];
    if (to.seconds <= from.seconds) continue;
    const double end = std::min(seconds, to.seconds);
    const double share = (end - from.seconds) / (to.seconds - from.seconds);
    area += (end - from.seconds) * (from.value + share * (to.value - from.value) / 2);
  }
  if (seconds > points_.back().seconds)
    area += (seconds - std::max(points_.back().seconds, 0.0)) * points_.back().value;
  return area;
}

double Curve::integral(double seconds) const {
  const auto whole = [this](double time) {
    if (points_.empty()) {
      if (period_ <= 0) return middle_ * time;
      const double turn = 2 * std::numbers::pi / period_;
      return middle_ * time - amplitude_ / turn * std::cos(turn * time);
    }
    if (period_ <= 0) return area_before(time);
    const double periods = std::floor(time / period_);
    return periods * area_before(period_) + area_before(time - periods * period_);
  };
  return whole(seconds - shift_) - whole(-shift_);
}

double Curve::mean(double from, double to) const {
  return (integral(to) - integral(from)) / (to - from);
}

}  // namespace gpuwright::sim
