// gpuwright fit --from-log: the memory lines of a run beside what fit predicts for it, and what can be learnt from
// that.
#pragma once

#include <vector>

#include "catalog/catalog.h"
#include "cli/command.h"
#include "fit/fit.h"
#include "fit/learn/memory_log.h"

namespace gpuwright::cli {

// --from-log, --calibrate, --calibration, --forget, --measure
std::vector<Option> learn_options();

// One of them is asked for instead of an ordinary estimate (--measure only names GPUs).
bool asks_to_learn(const Arguments& arguments);
Result<int> run_fit_log(const Arguments& arguments, const Console& console, const catalog::Catalog& catalog);

// The command line with what the log says laid under it: words that the user wrote come first.
struct LogRequest {
  Arguments arguments;
  std::vector<std::pair<std::string, std::string>> words;  // those that came from the log: {"--context", "8192"}
  std::vector<std::string> notes;
};
Result<LogRequest> with_log(const Arguments& arguments, const fit::LogRun& run, const catalog::Catalog& catalog);

// The GPUs of this machine with the memory that is free now. unavailable when there is none, saying where it looked.
Result<std::vector<fit::Target>> targets_here(const catalog::Catalog& catalog);

}  // namespace gpuwright::cli
