// Reads sizes out of a config.json that nobody vouches for. The first thing that is wrong is remembered with the key
// that holds it, so that a family's function reads straight through and the caller looks once at the end; until then
// every read gives a harmless value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace gpuwright::model {

// Upper limits of what a config may claim. All products of two dimensions stay far below 63 bits, and the tensor plan
// of the largest allowed model stays below a few hundred megabytes.
inline constexpr std::int64_t kMaxLayers = 10'000;
inline constexpr std::int64_t kMaxExperts = 100'000;
inline constexpr std::int64_t kMaxHeads = 1 << 16;
inline constexpr std::int64_t kMaxWidth = 1 << 26;
inline constexpr std::int64_t kMaxVocabulary = 1 << 28;
inline constexpr std::int64_t kMaxPositions = std::int64_t{1} << 40;

using Keys = std::initializer_list<std::string_view>;

// What reading one config has come to: the first error, and what had to be filled in.
struct Reading {
  std::string file;
  std::optional<Error> error;
  std::vector<std::string> assumptions;

  void wrong(std::string what, std::string hint = {});
  void refuse(std::string what, std::string hint = {});
};

class Fields {
 public:
  Fields(const Json& object, Reading& reading, std::string path = {});

  // The value of the first of these keys that is there and not null.
  const Json* find(Keys keys, std::string_view* found = nullptr) const;
  bool has(Keys keys) const { return find(keys) != nullptr; }

  // A whole number from 1 to `most` (from 0 with size_or_zero), under any of the names that families use for it.
  std::int64_t required(Keys keys, std::int64_t most = kMaxWidth) const;
  std::int64_t size(Keys keys, std::int64_t fallback, std::int64_t most = kMaxWidth) const;
  std::int64_t size_or_zero(Keys keys, std::int64_t fallback, std::int64_t most = kMaxWidth) const;
  double number(Keys keys, double fallback) const;
  bool flag(Keys keys, bool fallback) const;
  std::string text(Keys keys, std::string_view fallback = {}) const;
  std::vector<std::string> texts(Keys keys) const;
  // Numbers of a list, at most kMaxLayers; a lone number is a list of one. Each from 0 to `most`.
  std::vector<std::int64_t> sizes(Keys keys, std::int64_t most = kMaxWidth) const;
  // The same with values for keys that are absent; `json` is an object written in the source.
  Fields with_defaults(std::string_view json) const;
  // The same without some keys.
  Fields without(Keys keys) const;
  // The member object, or an empty one.
  Fields child(Keys keys) const;

  // value / divisor when that leaves no rest; else an error that names `keys`.
  std::int64_t quotient(std::int64_t value, std::int64_t divisor, std::string_view what) const;

  Reading& reading() const { return *reading_; }
  const Json& json() const { return *object_; }
  std::string path_of(std::string_view key) const { return path_ + std::string(key); }

 private:
  std::int64_t checked(const Json& value, std::string_view key, std::int64_t least, std::int64_t most) const;

  const Json* object_;
  Reading* reading_;
  std::string path_;
  std::vector<std::string> hidden_;
  std::vector<std::shared_ptr<const Json>> defaults_;  // the later ones count first
};

}  // namespace gpuwright::model
