#include <algorithm>

#include "base/text.h"
#include "fit/emit/told.h"

namespace gpuwright::fit {
namespace {

constexpr std::int64_t kLargestNumber = 1'000'000'000'000;

}  // namespace

tl::unexpected<Error> fault_at(const Place& place, std::string_view what, std::string hint) {
  return fail_at(ErrorCode::bad_input, {place.file, place.line, std::nullopt}, fmt::format("{} {}", place.key, what),
                 std::move(hint));
}

const ConfigNode* KeyReader::take(std::string_view key) {
  known_.push_back(key);
  const ConfigNode* node = map_.find(key);
  return node == nullptr || node->is_null() ? nullptr : node;
}

Place KeyReader::place(std::string_view key) const {
  const ConfigNode* node = map_.find(key);
  return {file_, node == nullptr ? map_.line : node->line, prefix_ + std::string(key)};
}

bool KeyReader::is_auto(std::string_view key) const {
  const ConfigNode* node = map_.find(key);
  return node != nullptr && node->as_string() && *node->as_string() == "auto";
}

Result<std::optional<std::int64_t>> KeyReader::integer(std::string_view key, std::int64_t least) {
  const ConfigNode* node = take(key);
  if (node == nullptr || is_auto(key)) return std::nullopt;
  const auto value = node->as_int();
  if (!value) return fault_at(place(key), "is not a whole number");
  if (*value < least || *value > kLargestNumber)
    return fault_at(place(key), fmt::format("is {}, which is not between {} and {}", *value, least, kLargestNumber));
  return value;
}

Result<std::optional<double>> KeyReader::number(std::string_view key) {
  const ConfigNode* node = take(key);
  if (node == nullptr || is_auto(key)) return std::nullopt;
  const auto value = node->as_double();
  if (!value) return fault_at(place(key), "is not a number");
  return value;
}

Result<std::optional<bool>> KeyReader::truth(std::string_view key) {
  const ConfigNode* node = take(key);
  if (node == nullptr || is_auto(key)) return std::nullopt;
  const auto value = node->as_bool();
  if (!value) return fault_at(place(key), "is neither true nor false");
  return value;
}

Result<std::optional<std::string>> KeyReader::word(std::string_view key) {
  const ConfigNode* node = take(key);
  if (node == nullptr || is_auto(key)) return std::nullopt;
  const auto value = node->as_string();
  if (!value) return fault_at(place(key), "is not a word");
  return std::string(*value);
}

Status KeyReader::tell(Told<std::int64_t>& told, std::string_view key, std::int64_t least) {
  const auto value = GW_TRY(integer(key, least));
  return value ? told.tell(*value, place(key)) : Status{};
}

Status KeyReader::tell(Told<bool>& told, std::string_view key) {
  const auto value = GW_TRY(truth(key));
  return value ? told.tell(*value, place(key)) : Status{};
}

Status KeyReader::tell(Told<std::string>& told, std::string_view key) {
  auto value = GW_TRY(word(key));
  return value ? told.tell(std::move(*value), place(key)) : Status{};
}

void KeyReader::pass(std::initializer_list<std::string_view> keys) {
  known_.insert(known_.end(), keys);
}

void KeyReader::note(std::string_view key, std::string text, std::vector<ConfigNote>& notes) const {
  const Place where = place(key);
  notes.push_back({where.file, where.line, where.key, std::move(text)});
}

void KeyReader::note_rest(std::vector<ConfigNote>& notes) const {
  for (const auto& [key, value] : map_.members)
    if (std::find(known_.begin(), known_.end(), key) == known_.end())
      note(key, "is not known here; it was not used", notes);
}

std::string ConfigNote::sentence() const {
  return fmt::format("{}:{}: {} {}", file, line, key, text);
}

}  // namespace gpuwright::fit
