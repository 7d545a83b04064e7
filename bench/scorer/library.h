// Lines about a library alone (NCCL, cuBLAS inside PyTorch), which no engine's estimate contains as such.
#pragma once

#include "base/result.h"
#include "catalog/catalog.h"
#include "row.h"
#include "score.h"

namespace gpuwright::scorer {

bool is_library(const Row& row);
Result<Prediction> predict_library(const Row& row, const catalog::Catalog& catalog);

}  // namespace gpuwright::scorer
