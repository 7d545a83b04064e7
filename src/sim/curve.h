// A value that changes with time as a scenario draws it: constant, sine, ramp, step, or a list of points. Besides its
// value a curve knows its integral, so that counters (energy, bytes) agree exactly with the rates that they count.
#pragma once

#include <vector>

namespace gpuwright::sim {

class Curve {
 public:
  struct Point {
    double seconds = 0;
    double value = 0;
  };

  Curve() = default;  // always 0
  static Curve constant(double value);
  // Starts at the mean, rising.
  static Curve sine(double low, double high, double period, double phase_seconds);
  // Straight lines between the points, whose times do not decrease; two points of one time are a jump. Before the first
  // and after the last the value stays, unless there is a period (at least the last time): then it begins anew.
  static Curve through(std::vector<Point> points, double period);

  double at(double seconds) const;
  // From 0 to `seconds`, which may be negative.
  double integral(double seconds) const;
  double mean(double from, double to) const;  // from < to
  // The same curve later by so many seconds and times a factor.
  Curve shifted(double seconds) const;
  Curve scaled(double factor) const;

 private:
  double area_before(double seconds) const;  // of one period, or of the unrepeated curve
  std::vector<Point> points_;                // empty: a sine
  double period_ = 0;                        // 0: not repeated
  double shift_ = 0;
  double middle_ = 0, amplitude_ = 0;
};

}  // namespace gpuwright::sim
