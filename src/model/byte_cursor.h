// A forward-only cursor over a file whose contents are not trusted. It reads ahead in blocks, never holds more than
// one, and jumps over what nobody asked for, so that a tokenizer of 128,000 words costs a walk through the page cache
// and gigabytes of weights cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"

namespace gpuwright::model {

// The first failure sticks: from then on every read gives zero or nothing, and status() tells it. Loops over counts
// that come from the file must therefore ask ok() each time round. Not thread-safe.
class ByteCursor {
 public:
  // Reads `block` bytes at a time, more only for a text that is longer. A small block stays in the cache and costs few
  // page faults; a source to which the way is long reads ahead itself. After `budget` bytes fetched in all the file is
  // refused: it can make a reader walk, but not for ever.
  ByteCursor(const ByteSource& source, std::size_t block, std::int64_t budget);

  bool ok() const { return !failure_; }
  Status status() const;
  std::int64_t position() const { return window_start_ + static_cast<std::int64_t>(cursor_); }
  std::int64_t size() const { return size_; }
  std::int64_t remaining() const { return size_ - position(); }
  void set_swapped(bool swapped) { swapped_ = swapped; }

  std::uint64_t unsigned_number(std::size_t width);  // of 1, 2, 4 or 8 bytes
  std::uint32_t u32() { return static_cast<std::uint32_t>(unsigned_number(4)); }
  std::uint64_t u64() { return unsigned_number(8); }
  double number(std::size_t width);  // IEEE 754 of 4 or 8 bytes
  std::uint64_t varint();            // of Protocol Buffers: seven bits a byte, at most ten bytes

  // `length` bytes, which may not exceed `most`; `what` is for messages: "a key".
  std::string text(std::uint64_t length, std::uint64_t most, std::string_view what);
  void skip(std::uint64_t count);
  void skip_strings(std::uint64_t count);  // each a 64-bit length and as many bytes

  // Notes a failure at the current position; the first one stays.
  void fail_here(std::string what, std::string hint = {});

 private:
  bool need(std::size_t count);  // that many bytes lie in the window from the cursor on
  bool refill(std::size_t count);

  const ByteSource& source_;
  std::int64_t size_;
  std::size_t block_;
  std::int64_t budget_;
  bool swapped_ = false;
  std::unique_ptr<std::byte[]> window_;
  std::size_t capacity_ = 0;
  std::size_t filled_ = 0;
  std::size_t cursor_ = 0;
  std::int64_t window_start_ = 0;
  std::optional<Error> failure_;
};

}  // namespace gpuwright::model
