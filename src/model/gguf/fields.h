// Sizes from the metadata of one architecture, each checked to be a plausible size before anybody multiplies it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/gguf/header.h"

namespace gpuwright::model::gguf {

// Keys are given without the architecture: "attention.head_count" is read from "llama.attention.head_count". The first
// implausible value sticks as an error; status() tells it. Refers to the header, which must live longer.
class Fields {
 public:
  Fields(const Header& header, std::string_view architecture, std::string_view file_name)
      : header_(header), prefix_(std::string(architecture) + "."), file_name_(file_name) {}

  Status status() const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  const Value* find(std::string_view key) const { return header_.find(prefix_ + std::string(key)); }

  // A scalar; of an array its largest element. `fallback` when absent.
  std::int64_t size(std::string_view key, std::int64_t fallback = 0);
  // The element of an array that belongs to this layer, or a scalar that counts for all.
  std::int64_t size_in(std::string_view key, std::int64_t layer, std::int64_t fallback);
  std::int64_t required(std::string_view key);
  std::optional<bool> flag(std::string_view key) const;
  // Whether the array has an element for this layer, and it is not 0.
  std::optional<bool> flag_in(std::string_view key, std::int64_t layer) const;

  void fail_on(std::string_view key, std::string what);

 private:
  const Value* whole_numbers(std::string_view key);
  std::int64_t checked(std::string_view key, std::int64_t value);

  const Header& header_;
  std::string prefix_;
  std::string file_name_;
  std::optional<Error> failure_;
};

}  // namespace gpuwright::model::gguf
