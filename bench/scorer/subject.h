// What a line's figure is about: its model in its weight format, the part of it that is asked for, and the settings
// that only follow once the model is known.
#pragma once

#include "base/result.h"
#include "model/model.h"
#include "resolve_model.h"
#include "row.h"
#include "scenario.h"

namespace gpuwright::scorer {

// The whole model, its weights as the line says where the figure depends on them.
Result<ResolvedModel> model_of(const Row& row);
// That model, or the part of it that the line's `part` and `where` name.
Result<model::Model> asked_part(const Row& row, const model::Model& model);

// Completes the job by what a printed cache size tells of the micro-batch, and by what llama.cpp's --fit would move to
// the host. `model` is the whole one.
Status adapt(const Row& row, const model::Model& model, Scenario& scenario);

}  // namespace gpuwright::scorer
