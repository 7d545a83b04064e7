#include "model/config/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpuwright::model {
namespace {

const Json kEmptyObject = Json::object();

std::string shown(const Json& value) {
  std::string text = value.dump(0);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

}  // namespace

void Reading::wrong(std::string what, std::string hint) {
  if (!error) error = Error{ErrorCode::bad_input, std::move(what), Location{file, {}, {}}, std::move(hint)};
}

void Reading::refuse(std::string what, std::string hint) {
  if (!error) error = Error{ErrorCode::unsupported, std::move(what), Location{file, {}, {}}, std::move(hint)};
}

Fields::Fields(const Json& object, Reading& reading, std::string path)
    : object_(&object), reading_(&reading), path_(std::move(path)) {}

// A family's defaults hold one spelling of a key; the config may use another, so all spellings are tried on the config
// before the first default is used.
const Json* Fields::find(Keys keys, std::string_view* found) const {
  const auto in = [&](const Json& object) -> const Json* {
    for (const std::string_view key : keys) {
      if (std::find(hidden_.begin(), hidden_.end(), key) != hidden_.end()) continue;
      if (found) *found = key;
      if (const Json* value = object.find(key); value && !value->is_null()) return value;
    }
    return nullptr;
  };
  if (const Json* value = in(*object_)) return value;
  for (auto layer = defaults_.rbegin(); layer != defaults_.rend(); ++layer)
    if (const Json* value = in(**layer)) return value;
  if (found) *found = *keys.begin();
  return nullptr;
}

Fields Fields::without(Keys keys) const {
  Fields result = *this;
  for (const std::string_view key : keys) result.hidden_.emplace_back(key);
  return result;
}

Fields Fields::with_defaults(std::string_view json) const {
  Fields result = *this;
  if (auto parsed = parse_json(json, "defaults"))
    result.defaults_.push_back(std::make_shared<const Json>(std::move(*parsed)));
  return result;
}

std::int64_t Fields::checked(const Json& value, std::string_view key, std::int64_t least, std::int64_t most) const {
  const auto number = value.as_int();
  if (number && *number >= least && *number <= most) return *number;
  reading_->wrong(
      fmt::format("{} is {}, which is no whole number from {} to {}", path_of(key), shown(value), least, most));
  return least;
}

std::int64_t Fields::required(Keys keys, std::int64_t most) const {
  std::string_view key;
  if (const Json* value = find(keys, &key)) return checked(*value, key, 1, most);
  reading_->wrong(fmt::format("{} is missing", path_of(*keys.begin())), "the config does not describe a whole model");
  return 1;
}

std::int64_t Fields::size(Keys keys, std::int64_t fallback, std::int64_t most) const {
  std::string_view key;
  const Json* value = find(keys, &key);
  return value ? checked(*value, key, 1, most) : fallback;
}

std::int64_t Fields::size_or_zero(Keys keys, std::int64_t fallback, std::int64_t most) const {
  std::string_view key;
  if (const Json* value = find(keys, &key)) return checked(*value, key, 0, most);
  return fallback;
}

double Fields::number(Keys keys, double fallback) const {
  const Json* value = find(keys);
  if (!value) return fallback;
  const auto number = value->as_double();
  if (number && std::isfinite(*number)) return *number;
  reading_->wrong(fmt::format("{} is {}, which is no number", path_of(*keys.begin()), shown(*value)));
  return fallback;
}

bool Fields::flag(Keys keys, bool fallback) const {
  const Json* value = find(keys);
  if (!value) return fallback;
  if (const auto flag = value->as_bool()) return *flag;
  if (const auto number = value->as_int()) return *number != 0;
  reading_->wrong(fmt::format("{} is {}, which is neither true nor false", path_of(*keys.begin()), shown(*value)));
  return fallback;
}

std::string Fields::text(Keys keys, std::string_view fallback) const {
  std::string_view key;
  const Json* value = find(keys, &key);
  if (!value) return std::string(fallback);
  if (const auto text = value->as_string()) return std::string(*text);
  reading_->wrong(fmt::format("{} is {}, which is no text", path_of(key), shown(*value)));
  return std::string(fallback);
}

std::vector<std::string> Fields::texts(Keys keys) const {
  std::vector<std::string> texts;
  const Json* value = find(keys);
  if (!value) return texts;
  if (const auto one = value->as_string()) texts.emplace_back(*one);
  for (const Json& item : value->items()) {
    if (texts.size() >= static_cast<std::size_t>(kMaxLayers) * 4) {
      reading_->wrong(fmt::format("{} has {} entries", path_of(*keys.begin()), value->items().size()));
      break;
    }
    texts.emplace_back(item.as_string().value_or(std::string_view{}));
  }
  return texts;
}

std::vector<std::int64_t> Fields::sizes(Keys keys, std::int64_t most) const {
  std::vector<std::int64_t> numbers;
  std::string_view key;
  const Json* value = find(keys, &key);
  if (!value) return numbers;
  if (!value->is_array()) return {checked(*value, key, 0, most)};
  if (value->items().size() > static_cast<std::size_t>(kMaxLayers)) {
    reading_->wrong(fmt::format("{} has {} entries", path_of(key), value->items().size()));
    return numbers;
  }
  for (const Json& item : value->items()) numbers.push_back(checked(item, key, 0, most));
  return numbers;
}

Fields Fields::child(Keys keys) const {
  for (const std::string_view key : keys)
    if (const Json* value = object_->find(key); value && value->is_object())
      return {*value, *reading_, path_of(key) + "."};
  return {kEmptyObject, *reading_, path_of(*keys.begin()) + "."};
}

std::int64_t Fields::quotient(std::int64_t value, std::int64_t divisor, std::string_view what) const {
  if (divisor > 0 && value % divisor == 0 && value / divisor > 0) return value / divisor;
  reading_->wrong(fmt::format("{}{}: {} does not divide into {}", path_, what, value, divisor),
                  "check the head counts and sizes of the config");
  return 1;
}

}  // namespace gpuwright::model
