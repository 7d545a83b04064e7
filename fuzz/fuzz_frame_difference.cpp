// Differences from anybody, and of anything to anything: what is made of two frames gives the second one back, and what
// somebody made up gives a frame that it was meant to give, or is refused.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "device/frame_bytes.h"
#include "device/frame_difference.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpuwright::device;  // NOLINT: a fuzz target of one file
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t half = size / 2;
  const std::string before = seal_frame({1}, 0, bytes.substr(0, half)), frame = seal_frame({2}, 0, bytes.substr(half));
  const auto again = apply_difference(encode_difference(frame, before), before, "difference");
  if (!again || *again != frame) std::abort();
  const std::string made_up = seal_frame(
      {3}, kDifferenceFlag, before.substr(before.size() - 4) + frame.substr(0, 4) + std::string(bytes.substr(half)));
  const auto answer = apply_difference(made_up, before, "made up");
  if (answer && answer->substr(answer->size() - 4) != frame.substr(0, 4)) std::abort();
  return 0;
}
