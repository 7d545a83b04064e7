// Protocol Buffers on the wire, as much as a reader of untrusted files needs: the fields of a message one after the
// other, each within the bounds of its parent. Format: protobuf.dev/programming-guides/encoding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/byte_cursor.h"

namespace gpuwright::model::onnx {

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// One message. Usage: while (message.next()) switch (message.field()) {...}. A field that nobody reads is jumped over
// by the next next(). Failures stick to the cursor; next() is false from then on.
class Message {
 public:
  Message(ByteCursor& cursor, std::int64_t end) : cursor_(cursor), end_(end), resume_(cursor.position()) {}

  bool next();
  std::uint32_t field() const { return field_; }
  Wire wire() const { return wire_; }

  // Of a varint or fixed field; 0 for bytes.
  std::uint64_t number() const { return number_; }
  // Of a bytes field: its length; 0 for numbers.
  std::int64_t length() const { return wire_ == Wire::bytes ? resume_ - start_ : 0; }
  std::string text(std::uint64_t most, std::string_view what);
  Message open() { return {cursor_, resume_}; }  // a bytes field as a message
  // Numbers of a repeated integer field, packed into bytes or alone: calls take(number) for each.
  template <class Take>
  void each_number(Take take) {
    if (wire_ != Wire::bytes) return take(number_);
    while (cursor_.ok() && cursor_.position() < resume_) take(cursor_.varint());
  }

 private:
  ByteCursor& cursor_;
  std::int64_t end_;
  std::int64_t resume_;  // where the next field begins
  std::int64_t start_ = 0;
  std::uint32_t field_ = 0;
  Wire wire_ = Wire::varint;
  std::uint64_t number_ = 0;
};

}  // namespace gpuwright::model::onnx
