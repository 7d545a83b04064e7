#include "model/testing/gguf_builder.h"

#include <bit>
#include <numeric>

namespace gpuwright::model::testing {
namespace {

constexpr std::uint32_t kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9, kU64 = 10, kU16 = 2;

std::uint64_t elements(const std::vector<std::uint64_t>& dimensions) {
  return std::accumulate(dimensions.begin(), dimensions.end(), std::uint64_t{1}, std::multiplies<>());
}
std::uint64_t padded(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

void GgufBuilder::number(std::string& out, std::uint64_t value, int width) const {
  for (int i = 0; i < width; ++i) {
    const int shift = 8 * (big_endian_ ? width - 1 - i : i);
    out.push_back(static_cast<char>(value >> shift & 0xff));
  }
}

void GgufBuilder::string(std::string& out, std::string_view value) const {
  number(out, value.size(), 8);
  out += value;
}

GgufBuilder& GgufBuilder::entry(std::string_view key, std::uint32_t type, std::uint64_t value, int width) {
  std::string bytes;
  number(bytes, value, width);
  return raw(key, type, bytes);
}

GgufBuilder& GgufBuilder::raw(std::string_view key, std::uint32_t type, std::string_view bytes) {
  string(metadata_, key);
  number(metadata_, type, 4);
  metadata_ += bytes;
  ++entries_;
  return *this;
}

GgufBuilder& GgufBuilder::u16(std::string_view key, std::uint16_t value) {
  return entry(key, kU16, value, 2);
}
GgufBuilder& GgufBuilder::u32(std::string_view key, std::uint32_t value) {
  return entry(key, kU32, value, 4);
}
GgufBuilder& GgufBuilder::u64(std::string_view key, std::uint64_t value) {
  return entry(key, kU64, value, 8);
}
GgufBuilder& GgufBuilder::i32(std::string_view key, std::int32_t value) {
  return entry(key, kI32, static_cast<std::uint32_t>(value), 4);
}
GgufBuilder& GgufBuilder::f32(std::string_view key, float value) {
  return entry(key, kF32, std::bit_cast<std::uint32_t>(value), 4);
}
GgufBuilder& GgufBuilder::boolean(std::string_view key, bool value) {
  return entry(key, kBool, value ? 1 : 0, 1);
}
GgufBuilder& GgufBuilder::text(std::string_view key, std::string_view value) {
  std::string bytes;
  string(bytes, value);
  return raw(key, kString, bytes);
}

std::string GgufBuilder::array_head(std::uint32_t type, std::uint64_t count) const {
  std::string bytes;
  number(bytes, type, 4);
  number(bytes, count, 8);
  return bytes;
}

GgufBuilder& GgufBuilder::u32_array(std::string_view key, const std::vector<std::uint32_t>& values) {
  std::string bytes = array_head(kU32, values.size());
  for (const std::uint32_t value : values) number(bytes, value, 4);
  return raw(key, kArray, bytes);
}
GgufBuilder& GgufBuilder::i32_array(std::string_view key, const std::vector<std::int32_t>& values) {
  std::string bytes = array_head(kI32, values.size());
  for (const std::int32_t value : values) number(bytes, static_cast<std::uint32_t>(value), 4);
  return raw(key, kArray, bytes);
}
GgufBuilder& GgufBuilder::boolean_array(std::string_view key, const std::vector<bool>& values) {
  std::string bytes = array_head(kBool, values.size());
  for (const bool value : values) number(bytes, value ? 1 : 0, 1);
  return raw(key, kArray, bytes);
}
GgufBuilder& GgufBuilder::text_array(std::string_view key, const std::vector<std::string>& values) {
  std::string bytes = array_head(kString, values.size());
  for (const std::string& value : values) string(bytes, value);
  return raw(key, kArray, bytes);
}

GgufBuilder& GgufBuilder::tensor_at(std::uint64_t offset, std::string_view name,
                                    const std::vector<std::uint64_t>& dimensions, std::uint32_t type) {
  string(table_, name);
  number(table_, dimensions.size(), 4);
  for (const std::uint64_t extent : dimensions) number(table_, extent, 8);
  number(table_, type, 4);
  number(table_, offset, 8);
  ++tensors_;
  return *this;
}

GgufBuilder& GgufBuilder::tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions,
                                 std::uint32_t type, std::uint64_t bytes) {
  tensor_at(next_offset_, name, dimensions, type);
  next_offset_ = padded(next_offset_ + bytes, alignment_);
  return *this;
}

GgufBuilder& GgufBuilder::f32_tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions) {
  return tensor(name, dimensions, 0, elements(dimensions) * 4);
}
GgufBuilder& GgufBuilder::f16_tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions) {
  return tensor(name, dimensions, 1, elements(dimensions) * 2);
}

GgufBuilder& GgufBuilder::align(std::uint32_t alignment) {
  alignment_ = alignment;
  return u32("general.alignment", alignment);
}

GgufBuilder& GgufBuilder::claim_tensors(std::uint64_t count) {
  claims_tensors_ = true;
  claimed_tensors_ = count;
  return *this;
}
GgufBuilder& GgufBuilder::claim_entries(std::uint64_t count) {
  claims_entries_ = true;
  claimed_entries_ = count;
  return *this;
}

std::string GgufBuilder::header() const {
  std::string out = "GGUF";
  number(out, version_, 4);
  number(out, claims_tensors_ ? claimed_tensors_ : tensors_, 8);
  number(out, claims_entries_ ? claimed_entries_ : entries_, 8);
  out += metadata_;
  out += table_;
  out.resize(padded(out.size(), alignment_));
  return out;
}

std::string GgufBuilder::file() const {
  std::string out = header();
  out.resize(out.size() + next_offset_);
  return out;
}

GgufBuilder small_llama(std::uint32_t version, bool big_endian) {
  GgufBuilder builder(version, big_endian);
  builder.text("general.architecture", "llama")
      .text("general.name", "Tiny")
      .u32("general.file_type", 1)
      .u32("llama.block_count", 2)
      .u32("llama.embedding_length", 64)
      .u32("llama.context_length", 128)
      .u32("llama.feed_forward_length", 96)
      .u32("llama.attention.head_count", 4)
      .u32("llama.attention.head_count_kv", 2)
      .f32("llama.rope.freq_base", 10000.0F)
      .u32("llama.rope.dimension_count", 16)
      .text("tokenizer.ggml.model", "gpt2")
      .text_array("tokenizer.ggml.tokens", {"a", "b", "<end>", ""})
      .i32_array("tokenizer.ggml.token_type", {1, 1, 3, 1})
      .boolean("tokenizer.ggml.add_bos_token", true);
  builder.f16_tensor("token_embd.weight", {64, 4}).f32_tensor("output_norm.weight", {64});
  for (const std::string block : {"blk.0.", "blk.1."})
    builder.f32_tensor(block + "attn_norm.weight", {64})
        .f16_tensor(block + "attn_q.weight", {64, 64})
        .f16_tensor(block + "attn_k.weight", {64, 32})
        .f16_tensor(block + "attn_v.weight", {64, 32})
        .f16_tensor(block + "attn_output.weight", {64, 64})
        .f32_tensor(block + "ffn_norm.weight", {64})
        .f16_tensor(block + "ffn_gate.weight", {64, 96})
        .f16_tensor(block + "ffn_up.weight", {64, 96})
        .f16_tensor(block + "ffn_down.weight", {96, 64});
  return builder;
}

}  // namespace gpuwright::model::testing
