#include "fit/training/loss.h"

#include <fmt/format.h>

#include "fit/engine.h"
#include "fit/training/recipe.h"

namespace gpuwright::fit::training {
namespace {

// Tokens x words of one GPU: the head's output is split over tensor-parallel ranks.
double cells_of(const model::Model& model, const TrainingJob& job) {
  return shares_of(job).tokens * static_cast<double>(model.vocabulary) / job.tensor_parallel;
}

// Our trainer: log-probabilities stay, and backward makes two more of that size; in chunks, four at once.
LossBytes of_own_trainer(const model::Model& model, const TrainingJob& job, double cells) {
  if (!job.chunked_cross_entropy)
    return {3 * 4 * cells, 3 * 4 * cells, 3 * 4 * cells, fmt::format("3 x 4 B x {:.0f} logits", cells),
            "engines/train, src/loss"};
  const double chunk =
      std::min(cells, cells / static_cast<double>(std::max<std::int64_t>(1, job.cross_entropy_chunks.value_or(8))));
  const double bytes = 4 * 4 * chunk + 2 * 4 * shares_of(job).tokens * static_cast<double>(model.hidden);
  return {bytes, bytes, bytes, fmt::format("4 x 4 B x {:.0f} logits of a chunk, and the head's gradient", chunk),
          "engines/train, src/loss"};
}

}  // namespace

Result<LossBytes> loss_bytes(const model::Model& model, const TrainingJob& job) {
  if (model.vocabulary <= 0 || model.kind == model::ModelKind::encoder) return LossBytes{};
  const double cells = cells_of(model, job);
  if (job.engine == TrainingEngine::gpuwright) return of_own_trainer(model, job, cells);
  const std::string_view engine = name_of(job.engine);
  const bool fused = job.chunked_cross_entropy || job.engine == TrainingEngine::unsloth;
  const Constant per_logit = GW_TRY(constant(fused ? "chunked_loss_bytes_per_logit" : "loss_bytes_per_logit", engine));
  // Four fp32 copies; or, where nothing is cast, five of 16 bit less the one that is freed first.
  const double width = fused ? 1 : job.precision == Precision::fp32 ? 4.0 / 3 : job.loss_in_fp32 ? 1 : 0.75;
  return LossBytes{per_logit.low * width * cells, per_logit.expected * width * cells, per_logit.high * width * cells,
                   fmt::format("{:.1f} B x {:.0f} tokens x {} words{}", per_logit.expected * width,
                               shares_of(job).tokens, model.vocabulary,
                               job.tensor_parallel > 1 ? fmt::format(" / {}", job.tensor_parallel) : std::string()),
                   per_logit.source};
}

Result<LossBytes> evaluation_logits(const model::Model& model, const TrainingJob& job) {
  if (model.vocabulary <= 0 || model.kind == model::ModelKind::encoder || job.chunked_cross_entropy ||
      job.engine == TrainingEngine::unsloth)
    return LossBytes{};
  const double cells = cells_of(model, job), expected = (job.precision == Precision::fp32 ? 4 : 6) * cells;
  return LossBytes{expected / 3, expected, expected * 4 / 3, fmt::format("logits and their fp32 copy, {:.0f}", cells),
                   "transformers modeling code: logits.float() before the loss"};
}

double head_bytes(const model::Model& model, const TrainingJob& job) {
  const double tokens = shares_of(job).tokens, hidden = static_cast<double>(model.hidden);
  const bool full = job.method == TrainingMethod::full, trained = full || job.lora.trainable_embeddings;
  const double residual = residual_element(job);
  if (job.engine == TrainingEngine::gpuwright) {
    // Norm input (and 1.13's squares), the normalised vector and the head's own input where they are trained.
    const bool old = !version_at_least(job.engine_version, "2.0") && !job.fused_kernels;
    return tokens * hidden * 4 * (job.fused_kernels ? 2 : 1 + (old ? 1 : 0) + (full ? 2 : 0));
  }
  return tokens * hidden * ((job.fused_kernels || job.compiled ? residual : 4) + (full ? 2 : 0) + (trained ? 2 : 0));
}

}  // namespace gpuwright::fit::training
