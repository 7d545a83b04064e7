// What an architecture of GPUs brought: data/architectures.toml as plain structs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuwright::catalog {

struct Architecture {
  std::string vendor;
  std::string name;  // as Accelerator::architecture
  int year = 0;      // of the first product
  std::vector<std::string> compute_capabilities;
  std::vector<std::string> chips;
  std::string process;
  std::string memory;
  std::vector<std::string> data_types;  // of the tensor or matrix units
  std::vector<std::string> brought;
  std::optional<std::string> first_cuda, last_cuda;
  std::vector<std::string> sources;
  bool verified = true;  // false: not checked against a primary source
};

Result<std::vector<Architecture>> load_architectures();
Result<std::vector<Architecture>> architectures_from_toml(std::string_view text, std::string_view origin);

}  // namespace gpuwright::catalog
