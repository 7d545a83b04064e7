// `gpuwright fit --table`: the tables that guides print, in honest numbers.
#pragma once

#include "cli/command.h"

namespace gpuwright::cli {

std::vector<Option> table_options();
bool wants_table(const Arguments& arguments);
// --table alone is the classic one; --table quantization takes a MODEL (default llama-3.1-8b).
Result<int> run_fit_table(const Arguments& arguments, const Console& console);

}  // namespace gpuwright::cli
