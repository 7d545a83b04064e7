// Bytes of attention caches and recurrent states: the part that every engine shares. Engines decide how many cells
// (tokens of storage) each layer gets; this says what a cell costs.
#pragma once

#include "base/units.h"
#include "model/model.h"

namespace gpuwright::fit {

// One token in one layer, with keys and values stored in these types (MLA: the latent counts as keys).
Bytes cache_bytes_per_token(const model::Attention& attention, model::Dtype key_type, model::Dtype value_type);
// All layers together for one more token of context at unlimited window: the figure people quote ("128 KiB a token").
Bytes cache_bytes_per_token(const model::Model& model, model::Dtype key_type, model::Dtype value_type);
// One sequence's state in one layer.
Bytes recurrent_bytes(const model::Recurrent& recurrent, Bytes convolution_element, Bytes state_element);

}  // namespace gpuwright::fit
