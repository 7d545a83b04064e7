// Reads data/gpus.toml and files of its form. The layout is described at the head of that file.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "catalog/accelerator.h"

namespace gpuwright::catalog {

// Lays the rows of a file over `rows`: known ids field by field, new ones added at the end. Errors carry file and line;
// then rows holds a mixture and is to be thrown away. `origin` is the file that errors name.
Status read_gpus_file(std::string_view text, std::string_view origin, std::vector<Accelerator>& rows);

// The same file turned into JSON at build time; errors have no lines. Four times as fast.
Status read_gpus_json(std::string_view text, std::string_view origin, std::vector<Accelerator>& rows);

}  // namespace gpuwright::catalog
