#include "library.h"

#include <fmt/format.h>

#include <cmath>

#include "fit/engine.h"
#include "fit/fit.h"
#include "model/config.h"
#include "reading.h"
#include "scenario.h"

namespace gpuwright::scorer {
namespace {

// The workspace is a part of every estimate of transformers; any model will do.
Result<Prediction> cublas_workspace(const fit::Target& target) {
  const model::Model any = GW_TRY(model::model_of_size("1B"));
  fit::Job job;
  job.engine = fit::Engine::transformers;
  job.prompt_tokens = job.new_tokens = 1;
  const fit::Estimate answer = GW_TRY(fit::estimate(any, job, {target}));
  for (const fit::GpuEstimate& gpu : answer.per_gpu)
    for (const fit::Instant& instant : gpu.instants)
      for (const fit::Component& part : instant.components)
        if (part.formula.find("cuBLAS workspace") != std::string::npos)
          return Prediction{part.low.count, part.expected.count, part.high.count};
  return fail(ErrorCode::unsupported, "no estimate contains a cuBLAS workspace");
}

Result<Prediction> cuda_context(const fit::Target& target) {
  const auto found = fit::constant(fit::Engine::transformers, "cuda_context_bytes", {}, target.architecture);
  if (!found) return fail(ErrorCode::unsupported, "no constant for the CUDA context is known");
  return Prediction{std::llround(found->low), std::llround(found->expected), std::llround(found->high)};
}

}  // namespace

bool is_library(const Row& row) {
  return row.engine == "nccl" || row.engine == "pytorch" || row.engine == "cuda";
}

Result<Prediction> predict_library(const Row& row, const catalog::Catalog& catalog) {
  const std::string_view part = row.settings.text("part").value_or("");
  const auto name = row.settings.text("gpu");
  const catalog::Accelerator* gpu = name ? find_gpu(catalog, *name) : nullptr;
  fit::Target target = gpu != nullptr ? fit::target_from(*gpu) : fit::Target{};
  target.total = target.free = Bytes::from_gib(1024);
  if (part == "cublas-workspace") return cublas_workspace(target);
  if (part == "context") return cuda_context(target);
  return fail(ErrorCode::unsupported, fmt::format("{} alone: the part \"{}\" is not predicted", row.engine, part));
}

}  // namespace gpuwright::scorer
