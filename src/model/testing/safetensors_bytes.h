// Test help: a safetensors file with a given header text and so many bytes of data, in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gpuwright::model::testing {

// `length` replaces the true length of the header in the first eight bytes.
inline std::string safetensors_bytes(const std::string& header, std::size_t data,
                                     std::optional<std::uint64_t> length = {}) {
  const std::uint64_t claimed = length.value_or(header.size());
  std::string bytes;
  for (unsigned i = 0; i < 8; ++i) bytes += static_cast<char>(claimed >> (8 * i) & 0xff);
  return bytes + header + std::string(data, '\0');
}

}  // namespace gpuwright::model::testing
