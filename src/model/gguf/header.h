// The header of one GGUF file, decoded but not interpreted: metadata, the tensor table and where the data begin.
// Format: docs/gguf.md of ggml-org/ggml, versions 2 and 3, little- or big-endian; limits as in ggml/src/gguf.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace gpuwright::model::gguf {

enum class ValueType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64,
};

// A metadata value. Of long arrays and of text that describes nothing (templates, vocabularies) only the count is
// kept.
struct Value {
  ValueType type = ValueType::u8;  // of an array: of its elements
  bool is_array = false;
  std::uint64_t count = 1;             // elements of an array
  std::vector<std::int64_t> integers;  // integers and booleans; empty when not kept or beyond 63 bits
  double number = 0;                   // a floating-point scalar
  std::string text;                    // a string scalar
};

struct Entry {
  std::string key;
  Value value;
};

constexpr int kMaxDimensions = 4;

struct TensorInfo {
  std::string name;
  std::uint32_t type = 0;
  std::array<std::int64_t, kMaxDimensions> dimensions{1, 1, 1, 1};  // innermost first
  std::int64_t offset = 0;                                          // from the start of the data

  std::int64_t columns() const { return dimensions[0]; }
};

struct Header {
  std::uint32_t version = 0;
  bool big_endian = false;
  std::int64_t alignment = 32;
  std::int64_t data_offset = 0;  // of the tensor data in the file
  std::int64_t file_bytes = 0;
  std::vector<Entry> metadata;  // sorted by key
  std::vector<TensorInfo> tensors;

  const Value* find(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;  // a scalar, also from true and false
  std::string_view text(std::string_view key) const;                // empty when absent
};

// bad_input: not GGUF, cut off, or absurd; unsupported: version 1, a newer version, or the older GGML formats.
Result<Header> read_header(const ByteSource& file);

}  // namespace gpuwright::model::gguf
