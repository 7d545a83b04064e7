// A Snapshot as bytes: what the collector sends to its parent and what recordings hold. docs/recording.md describes it
// byte by byte. Readers refuse what is damaged; they never trust a length.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "device/snapshot.h"

namespace gpuwright::device {

inline constexpr std::size_t kFrameHeadSize = 20;
inline constexpr std::size_t kFrameTailSize = 4;
inline constexpr std::size_t kLargestPayload = std::size_t{16} << 20;

// A frame: magic, version, time, length, payload, CRC-32C. What exceeds the bounds of a frame is left out: processes
// beyond its size, strings beyond 16 KiB, numbers that are not finite (they become Why::implausible).
std::string encode_frame(const Snapshot& snapshot);

// The frame at the start of `bytes`, and how many bytes it took. bad_input when it is damaged, `name` in the message;
// unsupported when a newer gpuwright wrote it in a way that this one cannot read.
struct DecodedFrame {
  Snapshot snapshot;
  std::size_t size = 0;
};
Result<DecodedFrame> decode_frame(std::string_view bytes, std::string_view name);

// What a frame's head says. Nothing has been checked but the magic and the bound of the size.
struct FrameHead {
  std::size_t size = 0;  // of the whole frame
  UnixTime time;
};
// Nothing when there are fewer than kFrameHeadSize bytes, or when they are no head of a frame.
std::optional<FrameHead> frame_head(std::string_view bytes);
// The frame is whole: its checksum is that of its bytes.
bool frame_is_whole(std::string_view frame);

}  // namespace gpuwright::device
