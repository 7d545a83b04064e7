// What rules may ask of the tables: GPUs (catalog/catalog.h), and what goes with what (catalog/compat.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/catalog.h"

namespace gpuwright::explain {

// Answers the questions of base/rules/expression.h. data/compat.toml is read when the first question needs it. The
// catalogue must outlive the function.
std::function<std::optional<std::string>(std::string_view question, std::string_view of)> lookup_in(
    const catalog::Catalog& catalog);

}  // namespace gpuwright::explain
