#include "model/onnx/wire.h"

#include <fmt/format.h>

namespace gpuwright::model::onnx {

bool Message::next() {
  if (!cursor_.ok()) return false;
  if (cursor_.position() > resume_) {
    cursor_.fail_here("a field runs over the end of its message");
    return false;
  }
  cursor_.skip(static_cast<std::uint64_t>(resume_ - cursor_.position()));
  if (!cursor_.ok() || cursor_.position() >= end_) return false;
  const std::uint64_t tag = cursor_.varint();
  field_ = static_cast<std::uint32_t>(tag >> 3);
  wire_ = static_cast<Wire>(tag & 7);
  number_ = 0;
  std::uint64_t length = 0;
  switch (wire_) {
    case Wire::varint:
      number_ = cursor_.varint();
      break;
    case Wire::fixed64:
      number_ = cursor_.u64();
      break;
    case Wire::fixed32:
      number_ = cursor_.u32();
      break;
    case Wire::bytes:
      length = cursor_.varint();
      break;
    default:
      cursor_.fail_here(fmt::format("a field of wire type {}, which ONNX does not use", tag & 7));
  }
  if (cursor_.ok() && (tag >> 3 == 0 || tag >> 32 != 0)) cursor_.fail_here("a field number that cannot be");
  start_ = cursor_.position();
  if (cursor_.ok() && (start_ > end_ || length > static_cast<std::uint64_t>(end_ - start_)))
    cursor_.fail_here(fmt::format("a field of {} bytes where its message has {} left", length, end_ - start_),
                      "the file is cut off or damaged");
  if (!cursor_.ok()) return false;
  resume_ = start_ + static_cast<std::int64_t>(length);
  return true;
}

std::string Message::text(std::uint64_t most, std::string_view what) {
  return wire_ == Wire::bytes ? cursor_.text(static_cast<std::uint64_t>(length()), most, what) : std::string();
}

}  // namespace gpuwright::model::onnx
