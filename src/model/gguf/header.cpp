#include "model/gguf/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "model/byte_cursor.h"

namespace gpuwright::model::gguf {
namespace {

constexpr std::size_t kBlock = 64 << 10;
constexpr std::int64_t kMaxHeaderBytes = 1 << 28;  // of Gemma 3, with 262,144 words: 10 MiB
constexpr std::uint64_t kMaxTensors = 1 << 18;     // DeepSeek-V3 with one tensor an expert has 91,000
constexpr std::uint64_t kMaxEntries = 1 << 16;     // real files have about 40
constexpr std::uint64_t kMaxNameBytes = 1 << 10;   // ggml allows 64
constexpr std::uint64_t kMaxKeyBytes = 1 << 16;    // the specification's limit
constexpr std::uint64_t kMaxKeptText = 1 << 12;
constexpr std::uint64_t kMaxKeptElements = 1 << 14;  // of one array: no model has more layers
constexpr std::uint64_t kMaxKeptAltogether = 1 << 20;
constexpr int kMaxArrayDepth = 4;
constexpr std::int64_t kMaxAlignment = 1 << 20;
// Shortest possible: a metadata entry with an empty key and a byte; a tensor with an empty name and one dimension.
constexpr std::uint64_t kMinEntryBytes = 8 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;

// 0: not of fixed width.
std::size_t width_of(ValueType type) {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean:
      return 1;
    case ValueType::u16:
    case ValueType::i16:
      return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32:
      return 4;
    case ValueType::u64:
    case ValueType::i64:
    case ValueType::f64:
      return 8;
    case ValueType::string:
    case ValueType::array:
      break;
  }
  return 0;
}

bool is_float(ValueType type) {
  return type == ValueType::f32 || type == ValueType::f64;
}
bool is_signed(ValueType type) {
  return type == ValueType::i8 || type == ValueType::i16 || type == ValueType::i32 || type == ValueType::i64;
}

class HeaderReader {
 public:
  explicit HeaderReader(const ByteSource& file) : file_(file), cursor_(file, kBlock, kMaxHeaderBytes) {}

  Result<Header> read() {
    header_.file_bytes = file_.size();
    GW_TRY(read_magic());
    const std::uint64_t tensors = count_of("tensors", kMaxTensors, kMinTensorBytes);
    const std::uint64_t entries = count_of("metadata entries", kMaxEntries, kMinEntryBytes);
    header_.metadata.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(entries, 64)));
    for (std::uint64_t i = 0; i < entries && cursor_.ok(); ++i) read_entry();
    header_.tensors.reserve(cursor_.ok() ? static_cast<std::size_t>(std::min<std::uint64_t>(tensors, 4096)) : 0);
    for (std::uint64_t i = 0; i < tensors && cursor_.ok(); ++i) read_tensor();
    GW_TRY(cursor_.status());
    GW_TRY(sort_metadata());
    GW_TRY(check_tensor_names());
    GW_TRY(place_data());
    return std::move(header_);
  }

 private:
  tl::unexpected<Error> refuse(ErrorCode code, std::string what, std::string hint = {}) const {
    return fail_at(code, {file_.name(), std::nullopt, cursor_.position()}, std::move(what), std::move(hint));
  }

  Status read_magic() {
    const std::uint32_t magic = cursor_.u32();
    const std::uint32_t version = cursor_.u32();
    if (!cursor_.ok()) return refuse(ErrorCode::bad_input, "not a GGUF file: shorter than its first eight bytes");
    for (const std::string_view old : {"lmgg", "tjgg", "algg", "fmgg"})
      if (magic == magic_of(old))
        return refuse(ErrorCode::unsupported, "a GGML file of the time before GGUF",
                      "convert it with llama.cpp's convert_llama_ggml_to_gguf.py");
    if (magic != magic_of("GGUF")) return refuse(ErrorCode::bad_input, "not a GGUF file: the first bytes are not GGUF");
    // Only the version tells a file's byte order: it is small, so one half of it is zero.
    header_.big_endian = version != 0 && (version & 0xffff) == 0;
    cursor_.set_swapped(header_.big_endian);
    header_.version = header_.big_endian ? version >> 24 | (version >> 8 & 0xff00) : version;
    if (header_.version == 1)
      return refuse(ErrorCode::unsupported, "GGUF version 1, which was in use for one week of August 2023",
                    "convert the model again with a current llama.cpp");
    if (header_.version < 2 || header_.version > 3)
      return refuse(ErrorCode::unsupported,
                    fmt::format("GGUF version {}, where 2 and 3 are understood", header_.version),
                    "a newer gpuwright may read it, if the file is not damaged");
    return {};
  }

  static std::uint32_t magic_of(std::string_view letters) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value |= static_cast<std::uint32_t>(static_cast<unsigned char>(letters[i])) << (8 * i);
    return value;
  }

  // A count of things that take at least so many bytes each: a file cannot promise more than it can hold.
  std::uint64_t count_of(std::string_view what, std::uint64_t most, std::uint64_t least_bytes) {
    const std::uint64_t count = cursor_.u64();
    if (!cursor_.ok()) return 0;
    const std::uint64_t room = static_cast<std::uint64_t>(cursor_.remaining()) / least_bytes;
    if (count <= most && count <= room) return count;
    cursor_.fail_here(fmt::format("the header says {} {}, where the file has room for {} and {} are allowed", count,
                                  what, room, most));
    return 0;
  }

  void read_entry() {
    Entry entry;
    const std::uint64_t length = cursor_.u64();
    entry.key = cursor_.text(length, kMaxKeyBytes, "a metadata key");
    const std::uint32_t type = cursor_.u32();
    if (!known(type, entry.key)) return;
    entry.value.type = static_cast<ValueType>(type);
    if (entry.value.type == ValueType::array) {
      read_array(entry);
    } else if (entry.value.type == ValueType::string) {
      read_text(entry);
    } else {
      read_scalar(entry.value, entry.value.type, true);
    }
    if (cursor_.ok()) header_.metadata.push_back(std::move(entry));
  }

  bool known(std::uint32_t type, std::string_view key) {
    if (!cursor_.ok()) return false;
    if (type <= static_cast<std::uint32_t>(ValueType::f64)) return true;
    cursor_.fail_here(fmt::format("metadata entry \"{}\" has value type {}, which does not exist", key, type));
    return false;
  }

  void read_text(Entry& entry) {
    const std::uint64_t length = cursor_.u64();
    if (length <= kMaxKeptText) {
      entry.value.text = cursor_.text(length, kMaxKeptText, "a metadata text");
    } else {
      cursor_.skip(length);
    }
  }

  void read_scalar(Value& value, ValueType type, bool keep) {
    const std::size_t width = width_of(type);
    if (is_float(type)) {
      value.number = cursor_.number(width);
      return;
    }
    const std::uint64_t raw = cursor_.unsigned_number(width);
    if (!keep) return;
    if (is_signed(type)) {
      const unsigned shift = static_cast<unsigned>(64 - 8 * width);
      value.integers.push_back(static_cast<std::int64_t>(raw << shift) >> shift);
    } else if (raw <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      value.integers.push_back(static_cast<std::int64_t>(raw));
    }
  }

  void read_array(Entry& entry) {
    const std::uint32_t type = cursor_.u32();
    const std::uint64_t count = cursor_.u64();
    if (!known(type, entry.key)) return;
    Value& value = entry.value;
    value.is_array = true;
    value.type = static_cast<ValueType>(type);
    value.count = count;
    const std::size_t width = width_of(value.type);
    if (width != 0 && !is_float(value.type) && count <= kMaxKeptElements && kept_ + count <= kMaxKeptAltogether) {
      kept_ += count;
      for (std::uint64_t i = 0; i < count && cursor_.ok(); ++i) read_scalar(value, value.type, true);
    } else {
      skip_elements(value.type, count, entry.key, 1);
    }
  }

  void skip_elements(ValueType type, std::uint64_t count, std::string_view key, int depth) {
    const std::size_t width = width_of(type);
    if (width != 0) {
      const std::uint64_t room = static_cast<std::uint64_t>(cursor_.remaining()) / width;
      if (count > room)
        return cursor_.fail_here(
            fmt::format("metadata entry \"{}\" has {} elements, where the file has room for {}", key, count, room));
      return cursor_.skip(count * width);
    }
    if (type == ValueType::string) return cursor_.skip_strings(count);
    if (depth >= kMaxArrayDepth)
      return cursor_.fail_here(fmt::format("metadata entry \"{}\" is an array more than {} deep", key, kMaxArrayDepth));
    for (std::uint64_t i = 0; i < count && cursor_.ok(); ++i) {
      const std::uint32_t inner = cursor_.u32();
      const std::uint64_t inner_count = cursor_.u64();
      if (known(inner, key)) skip_elements(static_cast<ValueType>(inner), inner_count, key, depth + 1);
    }
  }

  void read_tensor() {
    TensorInfo tensor;
    const std::uint64_t length = cursor_.u64();
    tensor.name = cursor_.text(length, kMaxNameBytes, "a tensor name");
    const std::uint32_t dimensions = cursor_.u32();
    if (cursor_.ok() && dimensions > kMaxDimensions)
      cursor_.fail_here(
          fmt::format("tensor \"{}\" has {} dimensions, more than {}", tensor.name, dimensions, kMaxDimensions));
    std::optional<std::int64_t> elements = 1;
    for (std::uint32_t i = 0; i < dimensions && cursor_.ok(); ++i) {
      tensor.dimensions[i] = static_cast<std::int64_t>(cursor_.u64());
      elements =
          elements && tensor.dimensions[i] > 0 ? checked_multiply(*elements, tensor.dimensions[i]) : std::nullopt;
    }
    if (cursor_.ok() && !elements)
      cursor_.fail_here(fmt::format("tensor \"{}\" has no elements, or more than 63 bits can count", tensor.name));
    tensor.type = cursor_.u32();
    const std::uint64_t offset = cursor_.u64();
    if (cursor_.ok() && offset > static_cast<std::uint64_t>(header_.file_bytes))
      cursor_.fail_here(fmt::format("tensor \"{}\" begins at {}, beyond the file's {} bytes", tensor.name, offset,
                                    header_.file_bytes),
                        "the file is cut off or damaged");
    tensor.offset = static_cast<std::int64_t>(offset);
    if (cursor_.ok()) header_.tensors.push_back(std::move(tensor));
  }

  Status sort_metadata() {
    std::vector<Entry>& entries = header_.metadata;
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
    const auto twice = std::adjacent_find(entries.begin(), entries.end(),
                                          [](const Entry& a, const Entry& b) { return a.key == b.key; });
    if (twice == entries.end()) return {};
    return refuse(ErrorCode::bad_input, fmt::format("metadata entry \"{}\" is there twice", twice->key));
  }

  Status check_tensor_names() const {
    // By hash first: names share long beginnings, which makes them dear to compare.
    std::vector<std::pair<std::size_t, std::string_view>> names;
    names.reserve(header_.tensors.size());
    for (const TensorInfo& tensor : header_.tensors)
      names.emplace_back(std::hash<std::string_view>()(tensor.name), tensor.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice == names.end()) return {};
    return refuse(ErrorCode::bad_input, fmt::format("tensor \"{}\" is there twice", twice->second));
  }

  Status place_data() {
    if (header_.find("general.alignment") != nullptr) {
      const std::int64_t alignment = header_.integer("general.alignment").value_or(0);
      if (alignment <= 0 || alignment > kMaxAlignment || !std::has_single_bit(static_cast<std::uint64_t>(alignment)))
        return refuse(ErrorCode::bad_input, "general.alignment is not a power of two up to a mebibyte");
      header_.alignment = alignment;
    }
    // A file without tensors may end at its last entry, unpadded.
    header_.data_offset = std::min(pad_to(cursor_.position(), header_.alignment), header_.file_bytes);
    return {};
  }

  const ByteSource& file_;
  ByteCursor cursor_;
  Header header_;
  std::uint64_t kept_ = 0;
};

}  // namespace

const Value* Header::find(std::string_view key) const {
  const auto found = std::lower_bound(metadata.begin(), metadata.end(), key,
                                      [](const Entry& entry, std::string_view wanted) { return entry.key < wanted; });
  return found != metadata.end() && found->key == key ? &found->value : nullptr;
}

std::optional<std::int64_t> Header::integer(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr || value->is_array || value->integers.size() != 1) return std::nullopt;
  return value->integers.front();
}

std::string_view Header::text(std::string_view key) const {
  const Value* value = find(key);
  return value == nullptr ? std::string_view() : std::string_view(value->text);
}

Result<Header> read_header(const ByteSource& file) {
  return HeaderReader(file).read();
}

}  // namespace gpuwright::model::gguf
