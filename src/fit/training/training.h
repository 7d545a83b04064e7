// Umbrella of training: will this model, fine-tuned this way, fit on these GPUs? The question is TrainingJob (job.h),
// the answer the same Estimate as for inference: per GPU the instants load, forward end, backward, optimizer step,
// all-gather (sharded weights) and evaluation, each a list of components with range, formula, source and meter.
//
// The peak is the maximum over these instants, never their sum: activations are largest when the loss is computed,
// gradients only when backward is over, the optimizer's temporaries only in the step.
//
// The model's tensors are the base weights as they are stored: for QLoRA convert the model first
// (model::with_weight_format(model, "bnb-nf4-dq")). Files behind this header:
//   recipe       bytes of a trained parameter: weight, gradient, master, states
//   adapters     the modules that get LoRA or DoRA adapters, from the model's real linears
//   activations  what each operation of a layer keeps for backward
//   loss         logits and cross-entropy
//   sharding     shares of ZeRO and FSDP, and their buffers
//   overheads    context, libraries, NCCL, allocator slack
#pragma once

#include "fit/fit.h"
#include "fit/training/job.h"

namespace gpuwright::fit {

// One target a GPU: data_parallel x tensor_parallel x pipeline_parallel x context_parallel of them. A job of many
// GPUs may be asked with one target, which then stands for all of them (pipeline_stage says which stage).
// Errors: bad_input (a job that contradicts itself, the model or the targets), unsupported (no layers are known).
Result<Estimate> estimate_training(const model::Model& model, const TrainingJob& job,
                                   const std::vector<Target>& targets);

}  // namespace gpuwright::fit
