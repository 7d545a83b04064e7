// Files from anybody as a recording: what is whole is found in bounded time, lies within the file, in order and without
// overlap, and each frame that was found whole is read or refused. The second input has the right head.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "device/recording_part.h"

namespace {

using namespace gpuwright;  // NOLINT: a fuzz target of one file

void try_part(std::string bytes) {
  auto part = device::PartReader::open(bytes_in_memory(std::move(bytes), "file"));
  if (!part) return;
  const auto size = part->file().size();
  const device::PartScan scan = part->scan();
  std::int64_t end = device::kPartHeadSize;
  for (std::size_t i = 0; i < scan.frames.size(); ++i) {
    const device::FramePlace& frame = scan.frames[i];
    if (frame.offset < end) std::abort();
    end = frame.offset + static_cast<std::int64_t>(device::kFrameHeadSize + device::kFrameTailSize);
    const auto snapshot = part->read(i);
    if (snapshot && snapshot->time != frame.time) std::abort();
  }
  if (scan.end > size || (scan.end < size && scan.damage.empty())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try_part(bytes);
  try_part(device::encode_part_head({1, 1, {}}) + bytes);
  return 0;
}
