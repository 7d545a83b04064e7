// The question turned round: how much context, batch or how many layers fit; which is the smallest GPU that will do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "fit/fit.h"

namespace gpuwright::fit {

enum class Quantity : std::uint8_t { context, batch, layers, sequence };  // sequence: of training; else a context

struct Solution {
  std::int64_t value = 0;  // 0: not even the smallest fits
  Estimate estimate;       // of the job with that value (or with the smallest one tried)
  // The job that was estimated: asking for it again gives the same answer. More sequences of llama.cpp keep the share
  // of the context that each of them had, so its context_tokens, which count all sequences, have grown with the batch.
  Job job;
};
// The largest value whose verdict is `fits` (strict) or at least `tight`. Context stops at the model's own length.
Result<Solution> largest(Quantity quantity, const model::Model& model, const Job& job,
                         const std::vector<Target>& targets, bool strict);

struct GpuChoice {
  const catalog::Accelerator* accelerator = nullptr;
  Estimate estimate;
};
// Which accelerators are asked about; an empty one takes all.
using GpuFilter = std::function<bool(const catalog::Accelerator&)>;

// Accelerators of the catalogue that hold the job, smallest usable memory first, at most `limit` of them. Those that
// the engine does not run on are passed over.
Result<std::vector<GpuChoice>> smallest_gpus(const model::Model& model, const Job& job, const catalog::Catalog& catalog,
                                             int count, bool strict, std::size_t limit, const GpuFilter& among = {});
// The one with the most usable memory that the engine runs on; null where there is none.
const catalog::Accelerator* largest_gpu(const model::Model& model, const Job& job, const catalog::Catalog& catalog,
                                        const GpuFilter& among = {});

}  // namespace gpuwright::fit
