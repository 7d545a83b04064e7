// What the figures of a job say that could be better.
#pragma once

#include "catalog/catalog.h"
#include "cli/run/outcome.h"

namespace gpuwright::cli {

// From the figures alone. Each is said only where what it rests on is known, over long enough a time.
std::vector<RunAdvice> advice_on(const Outcome& outcome, Language language);

// Where fit knows the job by its command line and foretells the memory that was measured: what would fit beside it.
std::optional<RunAdvice> advice_of_fit(const Outcome& outcome, const catalog::Catalog& catalog, Language language);

// The GPUs of the job in the words of fit: {"--gpu", "h100-sxm5-80gbx8"}; empty where that is not known.
std::vector<std::string> gpu_words(const Watched& gpus);

// The job's words for fit, with its GPUs: nothing where its model is no file here and no preset.
std::optional<std::vector<std::string>> words_for_fit(const Outcome& outcome);

}  // namespace gpuwright::cli
