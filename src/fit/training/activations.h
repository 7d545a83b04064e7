// What the operations of one layer keep for backward, and what backward of that layer needs beside it.
//
// Every count follows from the derivative of an operation: a matrix product keeps its input (only if the weight, or an
// adapter on it, is trained), a norm its input, attention q, k, v, its output and (unless a flash kernel recomputes
// them) the probabilities, SwiGLU the gate, its SiLU, the up projection and their product. With bf16 elements, a plain
// PyTorch RMSNorm and every weight trained that makes 20h + 4kv + 8f bytes a token of a Llama layer; with Megatron's
// GELU block, dropouts and 16-bit norms 34h + 5 heads x sequence (arXiv 2205.05198, section 4.1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fit/training/adapters.h"
#include "fit/training/job.h"
#include "model/model.h"

namespace gpuwright::fit::training {

struct LayerBytes {
  double saved = 0;         // kept for backward when nothing is recomputed
  double selective = 0;     // kept under selective checkpointing
  double input = 0;         // kept under full checkpointing: the residual stream that enters
  double shared_input = 0;  // of `saved`, when the layer is recomputed from `input`
  double backward = 0;      // beside `saved` while this layer's backward runs
  std::string formula;      // of `saved`
};

// How much of the tokens and of the width one GPU holds.
struct Shares {
  double tokens = 0;           // micro_batch x sequence / context parallel
  double sequence = 0;         // keys that a query sees
  double tensor_parallel = 1;  // of everything between the two matrix products of a pair
  double sequence_parallel = 1;
};
Shares shares_of(const TrainingJob& job);

// Whether attention of this model under this job keeps a sequence x sequence matrix.
bool keeps_probabilities(const model::Model& model, const TrainingJob& job);

LayerBytes layer_bytes(const model::Model& model, std::size_t layer, const std::vector<Module>& adapted,
                       const TrainingJob& job);

}  // namespace gpuwright::fit::training
