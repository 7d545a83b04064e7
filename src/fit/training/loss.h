// Logits and cross-entropy: what calculators forget most. Plain cross-entropy of a head with a large vocabulary holds
// the logits in the model's type, their fp32 copy, its gradient and the gradient's 16-bit copy: 12 bytes for each
// token and word (Llama-3, 8,192 tokens: 11.7 GiB).
#pragma once

#include "fit/training/activations.h"
#include "fit/training/constants.h"

namespace gpuwright::fit::training {

struct LossBytes {
  double low = 0, expected = 0, high = 0;
  std::string formula, source;
};
// At the end of forward, with the gradient that backward starts with.
Result<LossBytes> loss_bytes(const model::Model& model, const TrainingJob& job);
// Of an evaluation step, which keeps no gradient.
Result<LossBytes> evaluation_logits(const model::Model& model, const TrainingJob& job);
// The final norm and the head's input.
double head_bytes(const model::Model& model, const TrainingJob& job);

}  // namespace gpuwright::fit::training
