#include "model/gguf/cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace gpuwright::model::gguf {
namespace {

// A first block that holds most headers without a vocabulary, doubled for those that go on, so that a source behind a
// network is asked a handful of times.
constexpr std::size_t kFirstBlock = 256 << 10;
constexpr std::size_t kLargestBlock = 1 << 20;

std::uint64_t reversed(std::uint64_t value, std::size_t width) {
  std::uint64_t result = 0;
  for (std::size_t i = 0; i < width; ++i) result = result << 8 | (value >> (8 * i) & 0xff);
  return result;
}

}  // namespace

Cursor::Cursor(const ByteSource& source, std::int64_t limit) : source_(source), size_(source.size()), limit_(limit) {}

Status Cursor::status() const {
  if (failure_) return tl::unexpected<Error>(*failure_);
  return {};
}

void Cursor::fail_here(std::string what, std::string hint) {
  if (failure_) return;
  failure_ = Error{ErrorCode::bad_input, std::move(what), {source_.name(), std::nullopt, position()}, std::move(hint)};
}

bool Cursor::refill(std::size_t count) {
  if (failure_) return false;
  if (remaining() < static_cast<std::int64_t>(count)) {
    fail_here("the file ends inside its header", "it is cut off or not fully downloaded");
    return false;
  }
  if (position() > limit_) {
    fail_here(fmt::format("the header is longer than {} bytes", limit_));
    return false;
  }
  window_start_ = position();
  const std::size_t wanted = capacity_ == 0 ? kFirstBlock : std::min(capacity_ * 2, kLargestBlock);
  if (wanted > capacity_) {
    window_ = std::make_unique_for_overwrite<std::byte[]>(wanted);
    capacity_ = wanted;
  }
  cursor_ = filled_ = 0;
  const auto got = source_.read_at(window_start_, {window_.get(), capacity_});
  if (!got) {
    failure_ = got.error();
    return false;
  }
  filled_ = *got;
  if (filled_ < count) fail_here("the file became shorter while it was read");
  return !failure_;
}

bool Cursor::need(std::size_t count) {
  return filled_ - cursor_ >= count ? !failure_ : refill(count);
}

std::uint64_t Cursor::unsigned_number(std::size_t width) {
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

double Cursor::number(std::size_t width) {
  const std::uint64_t bits = unsigned_number(width);
  return width == 4 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))
                    : std::bit_cast<double>(bits);
}

std::string Cursor::text(std::uint64_t length, std::uint64_t most, std::string_view what) {
  if (ok() && length > most) fail_here(fmt::format("{} of {} bytes, more than the {} allowed", what, length, most));
  if (!ok() || !need(static_cast<std::size_t>(length))) return {};
  std::string result(reinterpret_cast<const char*>(window_.get() + cursor_), static_cast<std::size_t>(length));
  cursor_ += static_cast<std::size_t>(length);
  return result;
}

void Cursor::skip(std::uint64_t count) {
  if (failure_) return;
  if (count <= filled_ - cursor_) {
    cursor_ += static_cast<std::size_t>(count);
    return;
  }
  if (count > static_cast<std::uint64_t>(remaining())) {
    fail_here(fmt::format("the header speaks of {} more bytes where the file has {}", count, remaining()),
              "it is cut off or damaged");
    return;
  }
  window_start_ = position() + static_cast<std::int64_t>(count);
  cursor_ = filled_ = 0;
}

void Cursor::skip_strings(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count && ok(); ++i) skip(u64());
}

}  // namespace gpuwright::model::gguf
