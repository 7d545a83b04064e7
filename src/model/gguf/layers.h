// From metadata and tensor shapes to the blocks of a model. Heads, windows, ranks and states come from the metadata;
// which parts a block has and how wide they are is read off its tensors, which cannot be wrong about themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/gguf/architecture.h"
#include "model/gguf/fields.h"
#include "model/gguf/header.h"
#include "model/model.h"

namespace gpuwright::model::gguf {

// Fills layers, cross_attention_layers, multi_token_prediction_layers, encoder and assumptions; hidden and kind are
// already there. `tensors` are those of all shards.
Status add_layers(Model& model, const Architecture& architecture, Fields& fields,
                  const std::vector<TensorInfo>& tensors);

// Vision or audio tower and projector (general.architecture = clip).
Status add_tower(Model& model, Fields& fields);

}  // namespace gpuwright::model::gguf
