// The words that frames and their differences are written in: varints, and the hull around a payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "device/snapshot.h"

namespace gpuwright::device {

inline constexpr std::size_t kFlagsAt = 5;
inline constexpr std::uint8_t kDifferenceFlag = 1;

inline void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
inline void put_zigzag(std::string& out, std::int64_t value) {
  put_varint(out, (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

// Takes bytes from the front; what is not there any more is 0 or empty, and failed() tells.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t byte() {
    const std::string_view one = take(1);
    return one.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(one.front());
  }
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) return fail(), std::string_view();
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(count));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      if (failed_ || (shift == 63 && next > 1)) return fail(), 0;
      value |= static_cast<std::uint64_t>(next & 0x7F) << shift;
      if (next < 0x80) return value;
    }
    return fail(), 0;
  }
  std::int64_t zigzag() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }
  void fail() {
    failed_ = true;
    rest_ = {};
  }
  bool failed() const { return failed_; }
  bool empty() const { return rest_.empty(); }
  std::size_t left() const { return rest_.size(); }
  // From now on only the next `count` bytes are there; gives what comes after them. count <= left().
  std::string_view narrow(std::size_t count) {
    const std::string_view after = rest_.substr(count);
    rest_ = rest_.substr(0, count);
    return after;
  }
  void widen(std::string_view after) {
    if (!failed_) rest_ = after;
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

// A frame around a payload: head, payload, checksum.
std::string seal_frame(UnixTime time, std::uint8_t flags, std::string_view payload);
UnixTime frame_time(std::string_view frame);  // of a head that is there

}  // namespace gpuwright::device
