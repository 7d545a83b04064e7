// Bytes of a trained parameter as frameworks really keep it. Weight, gradient, master copy and optimizer states by
// precision recipe; what the optimizer's step needs on top for a moment.
//
//   recipe                      weight  cast  gradient  master  AdamW states   source
//   fp32                             4     -         4       -             8   torch.optim.AdamW
//   autocast (HF bf16, fp16)         4     2         4       -             8   transformers docs, model_memory_anatomy
//   pure bf16                        2     -         2       -             4   states follow the parameter's type
//   DeepSpeed fp16, bf16             2     -         2       4             8   + fp32 gradients of the shard at the
//   step Megatron mixed                   2     -         4       4             8   Megatron-LM docs, distributed
//   optimizer
//
// 8-bit Adam (arXiv 2110.02861): one byte a state and an fp32 scale per block; tensors under 4,096 elements stay fp32,
// and so do embeddings under Trainer, which overrides them. Adafactor (arXiv 1804.04235): a row and a column of fp32.
#pragma once

#include <cstdint>

#include "fit/training/job.h"

namespace gpuwright::fit::training {

struct Recipe {
  double weight = 2;
  double cast_copy = 0;  // low-precision copy that autocast keeps while a step runs
  double gradient = 2;
  double master = 0;
  double state = 2;          // bytes of one element of one plain state
  double step_gradient = 0;  // fp32 copy of the gradients while the optimizer steps
};
// Of the whole model under full fine-tuning.
Recipe full_recipe(const TrainingJob& job);
// Of LoRA matrices, and of embeddings trained beside them, which stay in the base's own 16-bit type.
Recipe adapter_recipe(const TrainingJob& job);
Recipe trained_embedding_recipe(const TrainingJob& job);

// States of one tensor of rows x columns.
double state_bytes(const TrainingJob& job, const Recipe& recipe, double rows, double columns, bool is_embedding);
// Temporaries of the step: of the whole set of parameters, or of the largest tensor.
struct StepTemporaries {
  double low_of_all = 0, of_all = 0, high_of_all = 0;  // bytes a parameter
  double of_largest = 0;                               // bytes a parameter of the largest tensor
};
StepTemporaries step_temporaries(const TrainingJob& job, const Recipe& recipe);

// Element size of activations and of the residual stream between blocks.
double activation_element(const TrainingJob& job);
double residual_element(const TrainingJob& job);

}  // namespace gpuwright::fit::training
