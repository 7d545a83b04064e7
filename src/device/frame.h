// A Snapshot as bytes: what the collector sends to its parent and what recordings hold. docs/recording.md describes it
// byte by byte. Readers refuse what is damaged; they never trust a length.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "device/snapshot.h"

namespace gpuwright::device {

// A frame: magic, version, length, payload, CRC-32C.
std::string encode_frame(const Snapshot& snapshot);
// The frame at the start of `bytes`, and how many bytes it took. bad_input when it is damaged, `name` in the message.
struct DecodedFrame {
  Snapshot snapshot;
  std::size_t size = 0;
};
Result<DecodedFrame> decode_frame(std::string_view bytes, std::string_view name);

}  // namespace gpuwright::device
