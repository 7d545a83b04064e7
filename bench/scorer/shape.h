// A model laid out from the geometry that a line of the table tells, for models that have no preset.
#pragma once

#include "model/model.h"
#include "resolve_model.h"
#include "row.h"

namespace gpuwright::scorer {

// bad_input or unsupported when the facts do not suffice for what is needed.
Result<model::Model> model_from_shape(const Row& row, Need need);

}  // namespace gpuwright::scorer
