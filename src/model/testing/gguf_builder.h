// Writes small GGUF files for tests: what a file says is up to the test, also when it is nonsense.
// The layout follows docs/gguf.md of ggml-org/ggml, written down here a second time, independent of the reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwright::model::testing {

class GgufBuilder {
 public:
  explicit GgufBuilder(std::uint32_t version = 3, bool big_endian = false)
      : version_(version), big_endian_(big_endian) {}

  GgufBuilder& u32(std::string_view key, std::uint32_t value);
  GgufBuilder& u16(std::string_view key, std::uint16_t value);
  GgufBuilder& u64(std::string_view key, std::uint64_t value);
  GgufBuilder& i32(std::string_view key, std::int32_t value);
  GgufBuilder& f32(std::string_view key, float value);
  GgufBuilder& boolean(std::string_view key, bool value);
  GgufBuilder& text(std::string_view key, std::string_view value);
  GgufBuilder& u32_array(std::string_view key, const std::vector<std::uint32_t>& values);
  GgufBuilder& i32_array(std::string_view key, const std::vector<std::int32_t>& values);
  GgufBuilder& boolean_array(std::string_view key, const std::vector<bool>& values);
  GgufBuilder& text_array(std::string_view key, const std::vector<std::string>& values);
  GgufBuilder& raw(std::string_view key, std::uint32_t type, std::string_view bytes);  // any value, also a wrong one

  // Dimensions innermost first, `bytes` as the data take. Offsets follow one another, aligned.
  GgufBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                      std::uint64_t bytes);
  GgufBuilder& tensor_at(std::uint64_t offset, std::string_view name, const std::vector<std::uint64_t>& dimensions,
                         std::uint32_t type);
  // F32 or F16, the bytes computed.
  GgufBuilder& f32_tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions);
  GgufBuilder& f16_tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions);
  GgufBuilder& align(std::uint32_t alignment);  // writes general.alignment

  // Counts written in place of the true ones.
  GgufBuilder& claim_tensors(std::uint64_t count);
  GgufBuilder& claim_entries(std::uint64_t count);

  std::string header() const;  // up to and with the padding before the data
  std::string file() const;    // with zeros for data
  std::uint64_t data_bytes() const { return next_offset_; }

 private:
  void number(std::string& out, std::uint64_t value, int width) const;
  void string(std::string& out, std::string_view value) const;
  GgufBuilder& entry(std::string_view key, std::uint32_t type, std::uint64_t value, int width);
  std::string array_head(std::uint32_t type, std::uint64_t count) const;

  std::uint32_t version_;
  bool big_endian_;
  std::uint64_t alignment_ = 32;
  std::uint64_t entries_ = 0, tensors_ = 0;
  std::uint64_t claimed_entries_ = 0, claimed_tensors_ = 0;
  bool claims_entries_ = false, claims_tensors_ = false;
  std::uint64_t next_offset_ = 0;
  std::string metadata_, table_;
};

// A Llama-shaped model of two blocks, with a tokenizer, every kind of metadata value and an odd name or two: what the
// mutations start from.
GgufBuilder small_llama(std::uint32_t version = 3, bool big_endian = false);

}  // namespace gpuwright::model::testing
