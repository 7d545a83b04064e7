// Frames from anybody: decode_frame answers or refuses, and what it answers is written and read again as it is. The
// checksum is made right, so that the contents are tried and not only the sum.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/crc32c.h"
#include "device/frame.h"

namespace {

using namespace gpuwright;  // NOLINT: a fuzz target of one file

void try_frame(std::string_view bytes) {
  const auto decoded = device::decode_frame(bytes, "frame");
  if (!decoded) {
    if (decoded.error().what.empty()) std::abort();
    return;
  }
  if (decoded->size > bytes.size()) std::abort();
  const std::string again = device::encode_frame(decoded->snapshot);
  const auto twice = device::decode_frame(again, "again");
  if (!twice || !(twice->snapshot == decoded->snapshot)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_frame(bytes);
  std::string frame("GWFR\x01\0\0\0........", 16);
  for (int i = 0; i < 4; ++i) frame.push_back(static_cast<char>(size >> (8 * i)));
  frame.append(bytes);
  const std::uint32_t sum = crc32c(frame);
  for (int i = 0; i < 4; ++i) frame.push_back(static_cast<char>(sum >> (8 * i)));
  try_frame(frame);
  return 0;
}
