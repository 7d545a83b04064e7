// What explain found, for people and as gpuwright.explain/1.
#pragma once

#include "base/json.h"
#include "cli/command.h"
#include "explain/explain.h"
#include "explain/input.h"

namespace gpuwright::cli {

// A finding of warning or above is there, or something failed that nobody can tell.
bool is_bad(const explain::Explanation& explanation);

Json to_json(const FactValue& fact);
Json to_json(const Finding& finding);
Json to_json(const explain::Explanation& explanation, const explain::LogInput& input);
void print_explanation(const explain::Explanation& explanation, const explain::LogInput& input, const Console& console);

}  // namespace gpuwright::cli
