// The words of `gpuwright setup`, and the machine they are said on, as a wish.
#pragma once

#include <string>

#include "catalog/catalog.h"
#include "cli/command.h"
#include "doctor/setup/setup.h"

namespace gpuwright::cli {

Result<doctor::SetupWish> setup_wish_from(const Arguments& arguments, const catalog::Catalog& catalog,
                                          const doctor::SetupTables& tables);

// The id of a distribution as people write it ("Ubuntu 24.04", "rocky9", "debian-12"); empty where it is none of the
// tables'.
std::string setup_distribution_named(std::string_view text, const doctor::SetupTables& tables);

}  // namespace gpuwright::cli
