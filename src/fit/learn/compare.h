// Prediction beside measurement, part by part.
#pragma once

#include <string>
#include <vector>

#include "fit/fit.h"
#include "fit/learn/memory_log.h"

namespace gpuwright::fit {

enum class Agreement : std::uint8_t {
  inside,    // within low..high, printed digits considered
  near,      // outside by at most kTolerated
  differs,   // outside by more
  possible,  // the log tells only a bound (an OOM message, a card that others use), which the prediction keeps
};
std::string_view name_of(Agreement agreement);

// Of the end of the range that was overstepped.
inline constexpr double kTolerated = 0.10;

struct Compared {
  Measurement measured;
  std::string where;  // "GPU 0", "host"; empty for capacities
  std::string what;   // "compute buffer", "allocated in all", "KV cache blocks"
  bool bytes = true;  // else a count
  double low = 0, expected = 0, high = 0;
  Agreement agreement = Agreement::inside;

  double value() const {
    return measured.what == Measurement::What::capacity ? measured.count : static_cast<double>(measured.bytes.count);
  }
  // Of the prediction: +0.05 is 5 % too much. Nothing when nothing was measured.
  std::optional<double> error() const;
};

struct Comparison {
  std::vector<Compared> rows;
  std::vector<std::string> notes;  // what was measured and has no prediction, and why

  bool differs() const;
};

// The estimate must be of the job that the log tells of. GPUs are matched by number, or in order where the log counts
// others than the job uses.
Comparison compare(const LogRun& run, const Estimate& estimate, Engine engine);

}  // namespace gpuwright::fit
