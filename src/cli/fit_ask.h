// Asking fit from other commands, in its own words.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "cli/fit_answer.h"

namespace gpuwright::cli {

struct AskedFit {
  std::unique_ptr<FitRequest> request;  // which the answer points to
  FitAnswer answer;
};

Result<AskedFit> ask_fit(const Arguments& arguments, const catalog::Catalog& catalog);

}  // namespace gpuwright::cli
