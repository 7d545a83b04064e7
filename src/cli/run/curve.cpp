#include "cli/run/curve.h"

#include <algorithm>

namespace gpuwright::cli {

void Curve::add(double seconds, Bytes size) {
  if (recent_.empty() || size > peak_.size) peak_ = {seconds, size};
  recent_.push_back({seconds, size});
  if (recent_.size() > kRecent) recent_.pop_front();
  while (seconds / piece_ >= static_cast<double>(kPieces)) halve();
  const auto piece = static_cast<std::size_t>(std::max(seconds, 0.0) / piece_);
  if (piece >= most_.size()) most_.resize(piece + 1, -1);
  most_[piece] = std::max(most_[piece], size.count);
}

void Curve::halve() {
  for (std::size_t i = 0; i < most_.size(); ++i) {
    const std::int64_t most = most_[i];
    if (i % 2 == 0)
      most_[i / 2] = most;
    else
      most_[i / 2] = std::max(most_[i / 2], most);
  }
  most_.resize((most_.size() + 1) / 2);
  piece_ *= 2;
}

std::vector<Curve::Point> Curve::whole() const {
  std::vector<Point> points;
  for (std::size_t i = 0; i < most_.size(); ++i)
    if (most_[i] >= 0) points.push_back({static_cast<double>(i) * piece_, Bytes{most_[i]}});
  return points;
}

std::vector<Curve::Point> Curve::last_seconds(double seconds) const {
  std::vector<Point> points;
  for (const Point& point : recent_)
    if (point.seconds >= last().seconds - seconds) points.push_back(point);
  return points;
}

}  // namespace gpuwright::cli
