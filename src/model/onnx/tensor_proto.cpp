#include "model/onnx/tensor_proto.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "base/units.h"

namespace gpuwright::model::onnx {
namespace {

enum TensorField : std::uint32_t {
  kDims = 1,
  kDataType = 2,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kExternalData = 13,
  kDataLocation = 14,
};

constexpr std::size_t kMaxDimensions = 64;
constexpr std::int64_t kMostElementsPerByte = 4;

class TensorReader {
 public:
  explicit TensorReader(ByteCursor& cursor) : cursor_(cursor) {}

  Initializer read(Message message) {
    while (message.next()) take(message);
    if (cursor_.ok()) settle();
    return std::move(result_);
  }

 private:
  void take(Message& message) {
    switch (message.field()) {
      case kDims:
        message.each_number([&](std::uint64_t extent) { take_dimension(static_cast<std::int64_t>(extent)); });
        break;
      case kDataType:
        type_ = static_cast<std::int64_t>(message.number());
        break;
      case kName:
        result_.name = message.text(kMaxNameBytes, "a tensor name");
        break;
      case kRawData:
        raw_bytes_ = message.length();
        break;
      case kStringData:
        letters_ += message.length();
        ++typed_room_;
        break;
      case kFloatData:
      case kInt32Data:
      case kInt64Data:
      case kDoubleData:
      case kUint64Data:
        // Packed or alone, an element takes a byte at least, and of the 2-bit types four share one number.
        typed_room_ += kMostElementsPerByte * (message.wire() == Wire::bytes ? message.length() : 1);
        break;
      case kExternalData:
        take_external(message.open());
        break;
      case kDataLocation:
        result_.external = message.number() == 1;
        break;
      default:
        break;
    }
  }

  void take_dimension(std::int64_t extent) {
    if (extent < 0) cursor_.fail_here(fmt::format("a tensor dimension of {}", extent));
    if (dimensions_ == kMaxDimensions)
      cursor_.fail_here(fmt::format("a tensor of more than {} dimensions", kMaxDimensions));
    if (!cursor_.ok()) return;
    if (dimensions_++ > 0) leading_ = leading_ ? checked_multiply(*leading_, last_) : std::nullopt;
    last_ = extent;
  }

  void take_external(Message message) {
    std::string key, value;
    while (message.next()) {
      if (message.field() == 1) key = message.text(kMaxNameBytes, "a key of external data");
      if (message.field() == 2) value = message.text(kMaxNameBytes, "a value of external data");
    }
    if (key == "location") result_.location = value;
    if (key != "offset" && key != "length") return;
    const auto number = to_integer(value);
    if (!number || *number < 0) return cursor_.fail_here(fmt::format("an external {} of \"{}\"", key, value));
    (key == "offset" ? result_.offset : result_.length) = *number;
  }

  // All fields are there, in whatever order they came: do they agree?
  void settle() {
    result_.type = element_type(type_);
    const auto elements = leading_ ? checked_multiply(*leading_, last_) : std::nullopt;
    if (!elements)
      return cursor_.fail_here(fmt::format("tensor \"{}\" has more elements than 63 bits can count", result_.name));
    result_.rows = *leading_;
    result_.columns = last_;
    const auto expected = packed_bytes(result_.type, *elements);
    if (result_.type.bits != 0 && !expected)
      return cursor_.fail_here(fmt::format("tensor \"{}\" takes more bits than 63 bits can count", result_.name));
    result_.has_data = raw_bytes_ > 0 || typed_room_ > 0 || result_.external || *elements == 0;
    if (raw_bytes_ > 0 && expected && raw_bytes_ != *expected)
      return cursor_.fail_here(fmt::format("tensor \"{}\" holds {} bytes, where its shape asks for {}", result_.name,
                                           raw_bytes_, *expected));
    if (raw_bytes_ == 0 && typed_room_ > 0 && *elements > typed_room_)
      return cursor_.fail_here(fmt::format("tensor \"{}\" holds {} elements at most, where its shape asks for {}",
                                           result_.name, typed_room_, *elements));
    result_.stored_bytes = raw_bytes_ > 0 ? raw_bytes_ : expected.value_or(letters_);
  }

  ByteCursor& cursor_;
  Initializer result_;
  std::int64_t type_ = 0;
  std::size_t dimensions_ = 0;
  std::optional<std::int64_t> leading_ = 1;
  std::int64_t last_ = 1;
  std::int64_t raw_bytes_ = 0;
  std::int64_t letters_ = 0;
  std::int64_t typed_room_ = 0;  // at most so many elements can be in the typed data
};

}  // namespace

Initializer read_tensor(ByteCursor& cursor, Message message) {
  return TensorReader(cursor).read(message);
}

std::vector<Initializer> read_sparse_tensor(ByteCursor& cursor, Message message) {
  enum : std::uint32_t { kValues = 1, kIndices = 2 };
  std::vector<Initializer> parts(2);
  while (message.next()) {
    if (message.field() == kValues) parts[0] = read_tensor(cursor, message.open());
    if (message.field() == kIndices) parts[1] = read_tensor(cursor, message.open());
  }
  parts[1].is_index = true;
  if (parts[1].name.empty()) parts[1].name = parts[0].name + ".indices";
  return parts;
}

}  // namespace gpuwright::model::onnx
