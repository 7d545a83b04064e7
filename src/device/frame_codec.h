// The rules by which a frame's payload is written and read (docs/recording.md). Encoder and Decoder are called in the
// same way, so that one description of a struct's fields (frame.cpp) serves both and the two cannot part.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "device/frame_bytes.h"
#include "device/snapshot.h"

namespace gpuwright::device {

// A reading's first byte: below kKnown it is the Why of a value that is missing.
inline constexpr std::uint8_t kKnown = 0x80;          // the value follows; a bool is in the lowest bit
inline constexpr std::uint8_t kThousandths = 0x81;    // a real number that is so many thousandths: zigzag varint
inline constexpr std::size_t kLongestString = 16384;  // longer ones are cut when written

// Unit structs (Watts, Bytes, UnixTime, ...) travel as the number inside.
template <class T>
auto& number_in(T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, Bytes>) {
    return value.count;
  } else if constexpr (std::is_same_v<Plain, UnixTime>) {
    return value.nanoseconds;
  } else if constexpr (std::is_same_v<Plain, ThrottleReasons>) {
    return value.bits;
  } else if constexpr (requires { value.value; }) {
    return value.value;
  } else {
    return value;
  }
}

class Encoder {
 public:
  void operator()(std::uint8_t byte) { out_.push_back(static_cast<char>(byte)); }
  void operator()(bool flag) { (*this)(static_cast<std::uint8_t>(flag)); }
  void operator()(int value) { (*this)(std::int64_t{value}); }
  void operator()(std::int64_t value) { put_zigzag(out_, value); }
  void operator()(std::uint64_t value) { varint(value); }
  void operator()(const UnixTime& time) { (*this)(time.nanoseconds); }
  void operator()(const std::string& text) {
    const std::string_view kept = std::string_view(text).substr(0, kLongestString);
    varint(kept.size());
    out_.append(kept);
  }
  // An enum whose values may become more; a reader that does not know one takes `unknown`.
  template <class Enum>
  void choice(Enum value, Enum /*last*/, Enum /*unknown*/) {
    (*this)(static_cast<std::uint8_t>(value));
  }

  template <class T>
  void operator()(const Reading<T>& reading) {
    if (!reading) return (*this)(static_cast<std::uint8_t>(reading.why()));
    const auto& number = number_in(*reading);
    using Number = std::remove_cvref_t<decltype(number)>;
    if constexpr (std::is_same_v<Number, bool>) {
      (*this)(static_cast<std::uint8_t>(kKnown | (number ? 1 : 0)));
    } else if constexpr (std::is_same_v<Number, double>) {
      real(number);
    } else {
      (*this)(kKnown);
      (*this)(number);
    }
  }

  template <class Body>
  void block(Body&& body) {
    const std::size_t start = out_.size();
    body();
    const std::size_t length = out_.size() - start;
    std::string head;
    head.swap(scratch_);
    head.clear();
    put_varint(head, length);
    out_.insert(start, head);
    scratch_.swap(head);
  }
  template <class T, class Fields>
  void list(const std::vector<T>& items, std::size_t most, Fields&& fields) {
    const std::size_t count = std::min(items.size(), most);
    varint(count);
    for (std::size_t i = 0; i < count; ++i) block([&] { fields(items[i]); });
  }

  std::string& bytes() { return out_; }

 private:
  void varint(std::uint64_t value) { put_varint(out_, value); }
  void real(double value) {
    if (!std::isfinite(value)) return (*this)(static_cast<std::uint8_t>(Why::implausible));
    const double thousandths = std::nearbyint(value * 1000);
    if (std::fabs(thousandths) < 9e15 && thousandths / 1000 == value) {
      (*this)(kThousandths);
      return (*this)(static_cast<std::int64_t>(thousandths));
    }
    (*this)(kKnown);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    for (int shift = 0; shift < 64; shift += 8) out_.push_back(static_cast<char>(bits >> shift));
  }

  std::string out_;
  std::string scratch_;
};

// A field that is missing because its block ends before it keeps its default: an older writer did not know it. What
// remains of a block after the fields that are known here is skipped: a newer writer knew more.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  void operator()(std::uint8_t& byte) {
    if (at_field()) byte = bytes_.byte();
  }
  void operator()(int& value) {
    std::int64_t wide = value;
    (*this)(wide);
    if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) return bytes_.fail();
    value = static_cast<int>(wide);
  }
  void operator()(std::int64_t& value) {
    if (at_field()) value = bytes_.zigzag();
  }
  void operator()(std::uint64_t& value) {
    if (at_field()) value = bytes_.varint();
  }
  void operator()(bool& flag) {
    if (at_field()) flag = (bytes_.byte() & 1) != 0;
  }
  void operator()(UnixTime& time) { (*this)(time.nanoseconds); }
  void operator()(std::string& text) {
    if (!at_field()) return;
    const std::uint64_t length = bytes_.varint();
    if (length > kLongestString) return bytes_.fail();
    text.assign(bytes_.take(length));
  }
  template <class Enum>
  void choice(Enum& value, Enum last, Enum unknown) {
    if (!at_field()) return;
    const std::uint8_t byte = bytes_.byte();
    value = byte <= static_cast<std::uint8_t>(last) ? static_cast<Enum>(byte) : unknown;
  }

  template <class T>
  void operator()(Reading<T>& reading) {
    if (!at_field()) return;
    const std::uint8_t tag = bytes_.byte();
    if (tag < kKnown) {
      reading = tag < kReasons ? static_cast<Why>(tag) : Why::failed;
      return;
    }
    T value{};
    auto& number = number_in(value);
    if constexpr (std::is_same_v<T, bool>) {
      number = (tag & 1) != 0;
    } else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(number)>, double>) {
      number = real(tag);
    } else {
      if (tag != kKnown || bytes_.empty()) return bytes_.fail();
      (*this)(number);
    }
    if (!failed()) reading = std::move(value);
  }

  template <class Body>
  void block(Body&& body) {
    if (!at_field()) return;
    const std::uint64_t length = bytes_.varint();
    if (length > bytes_.left()) return bytes_.fail();
    const std::string_view after = bytes_.narrow(static_cast<std::size_t>(length));
    body();
    bytes_.widen(after);
  }
  template <class T, class Fields>
  void list(std::vector<T>& items, std::size_t most, Fields&& fields) {
    if (!at_field()) return;
    const std::uint64_t count = bytes_.varint();
    if (count > most || count > bytes_.left()) return bytes_.fail();
    items.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < count && !failed(); ++i) block([&] { fields(items[i]); });
  }

  bool failed() const { return bytes_.failed(); }

 private:
  bool at_field() const { return !bytes_.empty(); }
  double real(std::uint8_t tag) {
    if (tag == kThousandths && !bytes_.empty()) {
      std::int64_t thousandths = 0;
      (*this)(thousandths);
      return static_cast<double>(thousandths) / 1000;
    }
    if (tag != kKnown) return bytes_.fail(), 0;
    std::uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 8) bits |= static_cast<std::uint64_t>(bytes_.byte()) << shift;
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) bytes_.fail();
    return value;
  }

  ByteReader bytes_;
};

}  // namespace gpuwright::device
