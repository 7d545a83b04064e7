// Where each tensor of a GGUF file lies and how many bytes it takes.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/gguf/header.h"
#include "model/weights_file.h"

namespace gpuwright::model::gguf {

// The tensors in the header's order, each with its bytes. Types that are not known take what lies between their own
// offset and the next (or the end of the file). bad_input: tensors that overlap, leave the file, start off the
// alignment, or have rows that are not whole blocks.
Result<std::vector<StoredTensor>> lay_out(const Header& header, const std::string& file_name);

}  // namespace gpuwright::model::gguf
