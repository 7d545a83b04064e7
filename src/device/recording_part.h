// One file of a recording: a header, then frames (docs/recording.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "device/frame.h"

namespace gpuwright::device {

inline constexpr std::int64_t kPartHeadSize = 48;
inline constexpr int kMostParts = 4;  // FILE, FILE.1, FILE.2, FILE.3

struct PartHead {
  std::uint64_t recording = 0;  // the same in all parts of a recording, drawn at random
  std::uint64_t number = 0;     // rises from part to part
  UnixTime made;
};

std::string part_name(const std::string& path, int age);  // age 0: path itself; 1: "path.1"
std::string encode_part_head(const PartHead& head);
// bad_input when the file is no part of a recording, unsupported when a newer gpuwright made it.
Result<PartHead> read_part_head(const ByteSource& file);

struct FramePlace {
  std::int64_t offset = 0;
  UnixTime time;
};
struct PartScan {
  std::vector<FramePlace> frames;  // those that are whole
  std::int64_t end = 0;            // of the last whole frame: what follows is damaged
  std::vector<std::string> damage;
};
// Finds the frames and checks them all. Damage costs the frames that it hit: reading goes on at the next whole one.
Result<PartScan> scan_part(const ByteSource& file);
Result<Snapshot> read_frame(const ByteSource& file, std::int64_t offset);

}  // namespace gpuwright::device
