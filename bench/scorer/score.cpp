#include "score.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpuwright::scorer {
namespace {

double relative_distance(double value, double bound) {
  const double scale = bound != 0 ? std::abs(bound) : std::abs(value);
  return std::abs(value - bound) / scale;
}

}  // namespace

Score score(const Prediction& prediction, const Interval& measured) {
  const double expected = static_cast<double>(prediction.expected);
  Score score;
  if (measured.low && prediction.expected < *measured.low)
    score.error = relative_distance(expected, static_cast<double>(*measured.low));
  else if (measured.high && prediction.expected > *measured.high)
    score.error = relative_distance(expected, static_cast<double>(*measured.high));
  score.covered = prediction.low <= measured.high.value_or(std::numeric_limits<std::int64_t>::max()) &&
                  prediction.high >= measured.low.value_or(std::numeric_limits<std::int64_t>::min());
  const double width = static_cast<double>(prediction.high) - static_cast<double>(prediction.low);
  score.band = expected == 0 ? 0 : width / 2 / std::abs(expected);
  return score;
}

std::string_view name_of(Group group) {
  constexpr std::array<std::string_view, kGroups> kNames = {
      "weights",    "kv",         "recurrent",   "compute",     "blocks", "inference-total",
      "full-total", "lora-total", "qlora-total", "max-context", "all"};
  return kNames[static_cast<std::size_t>(group)];
}

std::optional<Group> group_of(const Row& row, bool llama_family) {
  const std::string_view component = row.component;
  if (component == "max-context") return Group::max_context;
  if (component == "total-peak") {
    if (row.mode == "inference") return Group::inference_total;
    if (row.mode == "full") return Group::full_total;
    return row.mode == "qlora" ? Group::qlora_total : Group::lora_total;
  }
  if (component == "weights") return Group::weights;
  if (component == "kv" || component == "kv-recurrent") return Group::kv;
  if (component == "recurrent") return Group::recurrent;
  if (component == "compute" && llama_family) return Group::compute;
  if (component == "blocks" || component == "tokens") return Group::blocks;
  return std::nullopt;
}

double percentile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const std::size_t below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double share = position - static_cast<double>(below);
  return values[below] + (values[above] - values[below]) * share;
}

Summary summarize(const std::vector<Score>& scores) {
  Summary summary;
  summary.rows = scores.size();
  if (scores.empty()) return summary;
  std::vector<double> errors;
  std::size_t covered = 0;
  for (const Score& score : scores) {
    errors.push_back(score.error);
    covered += score.covered ? 1 : 0;
  }
  summary.median_error = percentile(errors, 0.5);
  summary.p90_error = percentile(std::move(errors), 0.9);
  summary.coverage = static_cast<double>(covered) / static_cast<double>(scores.size());
  return summary;
}

}  // namespace gpuwright::scorer
