// Inside of the safetensors readers: one header scanned into StoredTensors.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "model/weights_file.h"

namespace gpuwright::model {

// What the format allows a header to take (huggingface/safetensors, tensor.rs, MAX_HEADER_SIZE).
constexpr std::int64_t kMaxSafetensorsHeader = 100'000'000;
constexpr std::size_t kMaxTensorName = 4096;

// Keeps its buffers between files, so that the shards of a model are read without allocating anew. One thread each.
class SafetensorsScanner {
 public:
  SafetensorsScanner();
  ~SafetensorsScanner();
  SafetensorsScanner(SafetensorsScanner&&) noexcept;

  // Appends the file's tensors in the order of its header and gives the bytes of the header with its length field.
  // Their names are views of a text that the next scan overwrites, unless it is taken.
  // bad_input names the file and the byte for everything that the format forbids.
  enum class Names { must_differ, checked_by_caller };
  Result<Bytes> scan(const ByteSource& file, std::vector<StoredTensor>& tensors, Names names = Names::must_differ);
  std::unique_ptr<char[]> take_text();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gpuwright::model
