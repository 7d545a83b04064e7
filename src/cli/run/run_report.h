// What `run` says when the job has ended: to people, and as gpuwright.run/1.
#pragma once

#include "base/json.h"
#include "cli/command.h"
#include "cli/run/outcome.h"

namespace gpuwright::cli {

// At success a few lines; at failure the explanation, and the memory to the moment of death.
void print_outcome(const Outcome& outcome, const Console& console);
Json to_json(const Outcome& outcome);

// The memory that the job held on a GPU, over `seconds`, with the card's memory as the upper edge.
void print_memory_chart(const WatchedGpu& gpu, double seconds, const Console& console);

}  // namespace gpuwright::cli
