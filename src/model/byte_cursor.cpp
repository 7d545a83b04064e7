#include "model/byte_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace gpuwright::model {
namespace {

std::uint64_t reversed(std::uint64_t value, std::size_t width) {
  std::uint64_t result = 0;
  for (std::size_t i = 0; i < width; ++i) result = result << 8 | (value >> (8 * i) & 0xff);
  return result;
}

}  // namespace

ByteCursor::ByteCursor(const ByteSource& source, std::size_t block, std::int64_t budget)
    : source_(source), size_(source.size()), block_(block), budget_(budget) {}

Status ByteCursor::status() const {
  if (failure_) return tl::unexpected<Error>(*failure_);
  return {};
}

void ByteCursor::fail_here(std::string what, std::string hint) {
  if (failure_) return;
  failure_ = Error{ErrorCode::bad_input, std::move(what), {source_.name(), std::nullopt, position()}, std::move(hint)};
}

bool ByteCursor::refill(std::size_t count) {
  if (failure_) return false;
  if (remaining() < static_cast<std::int64_t>(count)) {
    fail_here("the file ends too early", "it is cut off or not fully downloaded");
    return false;
  }
  if (budget_ <= 0) {
    fail_here("the file has more to read than any model's description has");
    return false;
  }
  const std::size_t block = std::max(block_, count);
  if (block > capacity_) {
    window_ = std::make_unique_for_overwrite<std::byte[]>(block);
    capacity_ = block;
  }
  window_start_ = position();
  cursor_ = filled_ = 0;
  const auto got = source_.read_at(window_start_, {window_.get(), block});
  if (!got) {
    failure_ = got.error();
    return false;
  }
  filled_ = *got;
  budget_ -= static_cast<std::int64_t>(filled_);
  if (filled_ < count) fail_here("the file became shorter while it was read");
  return !failure_;
}

bool ByteCursor::need(std::size_t count) {
  return filled_ - cursor_ >= count ? !failure_ : refill(count);
}

std::uint64_t ByteCursor::unsigned_number(std::size_t width) {
  if (!need(width)) return 0;
  std::uint64_t value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, window_.get() + cursor_, width);
  } else {
    for (std::size_t i = 0; i < width; ++i) value |= static_cast<std::uint64_t>(window_[cursor_ + i]) << (8 * i);
  }
  cursor_ += width;
  return swapped_ ? reversed(value, width) : value;
}

double ByteCursor::number(std::size_t width) {
  const std::uint64_t bits = unsigned_number(width);
  return width == 4 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))
                    : std::bit_cast<double>(bits);
}

std::uint64_t ByteCursor::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (!need(1)) return 0;
    const auto byte = static_cast<std::uint8_t>(window_[cursor_++]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail_here("a number of more than ten bytes");
  return 0;
}

std::string ByteCursor::text(std::uint64_t length, std::uint64_t most, std::string_view what) {
  if (ok() && length > most) fail_here(fmt::format("{} of {} bytes, more than the {} allowed", what, length, most));
  if (!ok() || !need(static_cast<std::size_t>(length))) return {};
  std::string result(reinterpret_cast<const char*>(window_.get() + cursor_), static_cast<std::size_t>(length));
  cursor_ += static_cast<std::size_t>(length);
  return result;
}

void ByteCursor::skip(std::uint64_t count) {
  if (failure_) return;
  if (count <= filled_ - cursor_) {
    cursor_ += static_cast<std::size_t>(count);
    return;
  }
  if (count > static_cast<std::uint64_t>(remaining())) {
    fail_here(fmt::format("the file speaks of {} more bytes where it has {}", count, remaining()),
              "it is cut off or damaged");
    return;
  }
  window_start_ = position() + static_cast<std::int64_t>(count);
  cursor_ = filled_ = 0;
}

// Vocabularies and merges are hundreds of thousands of strings: as long as they lie in the window, only the cursor
// moves.
void ByteCursor::skip_strings(std::uint64_t count) {
  constexpr std::size_t kLength = 8;
  while (count > 0 && ok()) {
    while (count > 0 && filled_ - cursor_ >= kLength) {
      const std::size_t before = cursor_;
      const std::uint64_t length = u64();
      if (length > filled_ - cursor_) {
        cursor_ = before;
        break;
      }
      cursor_ += static_cast<std::size_t>(length);
      --count;
    }
    if (count == 0) return;
    skip(u64());
    --count;
  }
}

}  // namespace gpuwright::model
