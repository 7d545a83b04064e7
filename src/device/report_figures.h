// Figures over time for a report: means and percentiles, weighted by time, in memory that does not grow with it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>

#include "device/report.h"

namespace gpuwright::device {

// How long which value held. Values that differ by less than a thousandth share a place, and the largest of them stands
// for all: the percentile that is given is a value that was seen.
class Distribution {
 public:
  void add(double value, Seconds time) {
    Place& place = places_[key_of(value)];
    place.seconds += time.count();
    place.value = std::max(place.value, value);
  }
  // The smallest value that was not exceeded for `share` of the time.
  double percentile(double share) const {
    double whole = 0, until = 0;
    for (const auto& [key, place] : places_) whole += place.seconds;
    for (const auto& [key, place] : places_) {
      until += place.seconds;
      if (until >= share * whole * (1 - 1e-12)) return place.value;
    }
    return 0;
  }

 private:
  struct Place {
    double seconds = 0;
    double value = 0;
  };
  // The exponent, and ten bits of the mantissa; none of the values is negative but temperatures.
  static std::int64_t key_of(double value) {
    int exponent = 0;
    const double mantissa = std::frexp(std::fabs(value), &exponent);
    if (mantissa == 0) return 0;
    const std::int64_t key = (std::int64_t{exponent} + 1100) * 1024 + std::llround(mantissa * 1024);
    return value < 0 ? -key : key;
  }

  std::map<std::int64_t, Place> places_;
};

class Figure {
 public:
  void add(double value, Seconds time) {
    distribution_.add(value, time);
    sum_ += value * time.count();
    known_ += time;
  }
  // A value of one moment.
  void see(double value) { max_ = std::max(max_.value_or(value), value); }

  // Nothing when it was never known over any time. make: a unit from a number.
  template <class Unit, class Make>
  std::optional<OverTime<Unit>> over_time(Make&& make) const {
    if (known_ <= Seconds(0) || !max_) return std::nullopt;
    return OverTime<Unit>{make(sum_ / known_.count()), make(distribution_.percentile(0.95)), make(*max_), known_};
  }

 private:
  Distribution distribution_;
  double sum_ = 0;
  Seconds known_{};
  std::optional<double> max_;
};

}  // namespace gpuwright::device
