// A size over time in bounded memory: what it was at most in each of equally long pieces of time, which get longer as
// time goes on; and the last minutes as they were read.
#pragma once

#include <deque>
#include <vector>

#include "base/units.h"

namespace gpuwright::cli {

class Curve {
 public:
  struct Point {
    double seconds = 0;  // since the beginning
    Bytes size;
  };

  void add(double seconds, Bytes size);  // times do not decrease

  bool empty() const { return recent_.empty(); }
  Point peak() const { return peak_; }
  Point last() const { return recent_.empty() ? Point{} : recent_.back(); }
  // What was most in pieces of time, at most kPieces of them; pieces in which nothing was read are left out.
  std::vector<Point> whole() const;
  // As it was read, from so many seconds before the last reading on; at most kRecent readings.
  std::vector<Point> last_seconds(double seconds) const;

  static constexpr std::size_t kPieces = 512, kRecent = 512;

 private:
  void halve();

  double piece_ = 0.25;             // seconds of one piece
  std::vector<std::int64_t> most_;  // by piece; -1: nothing was read
  std::deque<Point> recent_;
  Point peak_;
};

}  // namespace gpuwright::cli
