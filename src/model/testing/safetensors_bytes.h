// Test help: safetensors files in memory and folders of them on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace gpuwright::model::testing {

// A file with this header text and so many bytes of data. `length` replaces the true length of the header in the
// first eight bytes.
inline std::string safetensors_bytes(const std::string& header, std::size_t data,
                                     std::optional<std::uint64_t> length = {}) {
  const std::uint64_t claimed = length.value_or(header.size());
  std::string bytes;
  for (unsigned i = 0; i < 8; ++i) bytes += static_cast<char>(claimed >> (8 * i) & 0xff);
  return bytes + header + std::string(data, '\0');
}

struct NamedTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
};

// A well-formed file of these tensors, zero-filled.
inline std::string safetensors_of(const std::vector<NamedTensor>& tensors) {
  std::string header = "{";
  std::size_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    std::size_t bytes = tensor.dtype == "F32" || tensor.dtype == "I32" || tensor.dtype == "U32" ? 4
                        : tensor.dtype == "BF16" || tensor.dtype == "F16"                       ? 2
                                                                                                : 1;
    std::string shape;
    for (const std::int64_t size : tensor.shape) {
      bytes *= static_cast<std::size_t>(size);
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    }
    header += (offset == 0 && header.size() == 1 ? "\"" : ",\"") + tensor.name + R"(":{"dtype":")" + tensor.dtype +
              R"(","shape":[)" + shape + R"(],"data_offsets":[)" + std::to_string(offset) + "," +
              std::to_string(offset + bytes) + "]}";
    offset += bytes;
  }
  return safetensors_bytes(header + "}", offset);
}

// A folder that is gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gpuwright-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& contents) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << contents;
  }

 private:
  std::string path_;
};

}  // namespace gpuwright::model::testing
