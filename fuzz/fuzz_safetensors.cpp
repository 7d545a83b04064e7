// Any bytes as a safetensors file: refused, or tensors whose bytes and the header's make up the file.
#include <cstdlib>

#include "model/weights_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpuwright;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto file = model::read_safetensors(*bytes_in_memory(bytes, "fuzz.safetensors"));
  if (!file) return 0;
  Bytes total = file->header_bytes;
  for (const model::StoredTensor& tensor : file->tensors) {
    total += tensor.bytes;
    static_cast<void>(model::place_of(tensor.name));
  }
  if (total.count != static_cast<std::int64_t>(size)) std::abort();
  return 0;
}
