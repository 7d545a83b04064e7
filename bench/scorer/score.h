// How far a prediction is from a measurement, and what many of them amount to.
//
//   error     0 when the expected value lies inside the measured interval, else its distance to the nearest bound of
//             the interval divided by that bound (a bound of 0: divided by the expected value, so 1).
//   covered   the measured interval overlaps the predicted low..high.
//   band      (high - low) / 2 / expected of the prediction.
//   median and p90 interpolate linearly between the ordered errors, as numpy.percentile does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "row.h"

namespace gpuwright::scorer {

// Bytes, or blocks and tokens.
struct Prediction {
  std::int64_t low = 0, expected = 0, high = 0;
};

struct Score {
  double error = 0;
  bool covered = false;
  double band = 0;
};
Score score(const Prediction& prediction, const Interval& measured);

enum class Group : std::uint8_t {
  weights,
  kv,
  recurrent,
  compute,
  blocks,
  inference_total,
  full_total,
  lora_total,
  qlora_total,
  max_context,
  all,
};
inline constexpr std::size_t kGroups = 11;
std::string_view name_of(Group group);
// The group that a row counts in besides `all`. Engine overheads, activations, budgets, CUDA graphs and the compute
// memory of other engines than llama.cpp's kin count in `all` alone. DoRA counts as LoRA.
std::optional<Group> group_of(const Row& row, bool llama_family);

struct Summary {
  std::size_t rows = 0;
  double median_error = 0, p90_error = 0, coverage = 0;  // meaningless when rows is 0
};
Summary summarize(const std::vector<Score>& scores);
// q in 0..1 of a non-empty list.
double percentile(std::vector<double> values, double q);

}  // namespace gpuwright::scorer
