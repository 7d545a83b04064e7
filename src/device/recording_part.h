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
  bool is_whole = true;  // false: it tells what changed since the frame before, which is the one before in the list
  UnixTime time;
};
struct PartScan {
  std::vector<FramePlace> frames;  // those that can be read, in the order of the file
  std::int64_t end = 0;            // of the last frame that is not damaged
  std::vector<std::string> damage;
};
// Finds the frames and checks them all. Damage costs the frames that it hit and those that tell what changed since:
// reading goes on at the next one that stands for itself.
Result<PartScan> scan_part(const ByteSource& file);

// Not thread-safe. Frames one after the other are read at once each; others from the whole frame before them.
class PartReader {
 public:
  static Result<PartReader> open(std::unique_ptr<ByteSource> file);
  const PartHead& head() const { return head_; }
  const PartScan& scan() const { return scan_; }
  const ByteSource& file() const { return *file_; }
  Result<Snapshot> read(std::size_t index);

 private:
  PartReader(std::unique_ptr<ByteSource> file, const PartHead& head, PartScan scan)
      : file_(std::move(file)), head_(head), scan_(std::move(scan)) {}
  Result<std::string> bytes_at(std::size_t index) const;

  std::unique_ptr<ByteSource> file_;
  PartHead head_;
  PartScan scan_;
  std::optional<std::size_t> latest_index_;
  std::string latest_;  // the frame of that index, whole
};

}  // namespace gpuwright::device
