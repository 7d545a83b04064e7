#include "model/gguf/fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuwright::model::gguf {
namespace {

// Larger than any dimension, count or context of a model; small enough that products of three stay within 63 bits
// after the smaller limits that layers have.
constexpr std::int64_t kLargestSize = 1 << 28;

}  // namespace

Status Fields::status() const {
  if (failure_) return tl::unexpected<Error>(*failure_);
  return {};
}

void Fields::fail_on(std::string_view key, std::string what) {
  if (failure_) return;
  failure_ = Error{ErrorCode::bad_input,
                   fmt::format("{}{} {}", prefix_, key, what),
                   {file_name_, std::nullopt, std::nullopt},
                   "the metadata are damaged, or of a kind not seen before"};
}

std::int64_t Fields::checked(std::string_view key, std::int64_t value) {
  if (value >= 0 && value <= kLargestSize) return value;
  fail_on(key, fmt::format("is {}, no plausible size", value));
  return 0;
}

// A key that is there but holds no whole numbers (NaN, text) must not pass for one that is absent.
const Value* Fields::whole_numbers(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr || (value->is_array && value->count == 0)) return nullptr;
  if (!value->integers.empty()) return value;
  fail_on(key, value->is_array ? "is no list of plausible sizes" : "is no whole number");
  return nullptr;
}

std::int64_t Fields::size(std::string_view key, std::int64_t fallback) {
  const Value* value = whole_numbers(key);
  if (value == nullptr) return fallback;
  return checked(key, *std::max_element(value->integers.begin(), value->integers.end()));
}

std::int64_t Fields::size_in(std::string_view key, std::int64_t layer, std::int64_t fallback) {
  const Value* value = whole_numbers(key);
  if (value == nullptr) return fallback;
  if (!value->is_array) return checked(key, value->integers.front());
  if (layer < static_cast<std::int64_t>(value->integers.size()))
    return checked(key, value->integers[static_cast<std::size_t>(layer)]);
  fail_on(key, fmt::format("has {} elements, none for block {}", value->integers.size(), layer));
  return 0;
}

std::int64_t Fields::required(std::string_view key) {
  const std::int64_t value = size(key, -1);
  if (value > 0) return value;
  fail_on(key, value < 0 ? "is missing" : "is 0");
  return 1;
}

std::optional<bool> Fields::flag(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr || value->is_array || value->integers.size() != 1) return std::nullopt;
  return value->integers.front() != 0;
}

std::optional<bool> Fields::flag_in(std::string_view key, std::int64_t layer) const {
  const Value* value = find(key);
  if (value == nullptr || !value->is_array || layer >= static_cast<std::int64_t>(value->integers.size()))
    return std::nullopt;
  return value->integers[static_cast<std::size_t>(layer)] != 0;
}

}  // namespace gpuwright::model::gguf
