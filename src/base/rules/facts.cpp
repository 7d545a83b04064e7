#include "base/rules/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace gpuwright {
namespace {

constexpr std::array<std::string_view, 11> kTypes = {"bytes", "integer", "number",     "text",  "lower-text", "version",
                                                     "cuda",  "cudnn",   "capability", "place", "held-by"};

std::string without_commas(std::string_view text) {
  std::string plain(trim(text));
  std::erase(plain, ',');
  std::erase(plain, '_');
  return plain;
}

std::optional<double> power_of_unit(std::string_view unit) {
  std::string name = lower(trim(unit));
  if (name.empty() || name == "b" || name == "byte" || name == "bytes") return 1.0;
  static constexpr std::string_view kPrefixes = "kmgtp";
  const std::size_t power = kPrefixes.find(name.front());
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = std::string_view(name).substr(1);
  if (rest != "" && rest != "b" && rest != "ib" && rest != "bytes" && rest != "i") return std::nullopt;
  return std::pow(1024.0, static_cast<double>(power) + 1);
}

std::optional<std::string> bytes_of(std::string_view text) {
  const std::string plain = without_commas(text);
  const std::size_t digits = plain.find_first_not_of("0123456789.eE+");
  const auto value = to_number(std::string_view(plain).substr(0, digits));
  const auto unit =
      digits == std::string::npos ? std::optional(1.0) : power_of_unit(std::string_view(plain).substr(digits));
  if (!value || !unit || *value < 0 || *value * *unit > 9e18) return std::nullopt;
  return fmt::format("{}", static_cast<std::int64_t>(std::llround(*value * *unit)));
}

std::optional<std::string> integer_of(std::string_view text) {
  const std::string plain = without_commas(text);
  if (plain.starts_with("0x") || plain.starts_with("0X")) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(plain.data() + 2, plain.data() + plain.size(), value, 16);
    if (error != std::errc() || end != plain.data() + plain.size()) return std::nullopt;
    return fmt::format("{}", value);
  }
  const auto value = to_integer(plain);
  if (!value) return std::nullopt;
  return fmt::format("{}", *value);
}

std::optional<std::string> number_of(std::string_view text) {
  const std::string plain = without_commas(text);
  if (!to_number(plain)) return std::nullopt;
  return plain;
}

// "11040" -> 11.4, "118" -> 11.8, "12.4" stays.
std::optional<std::string> cuda_of(std::string_view text) {
  const std::string plain(trim(text));
  const auto digits = to_integer(plain);
  if (!digits || *digits < 0) return plain.empty() ? std::nullopt : std::optional(plain);
  if (*digits >= 1000) return fmt::format("{}.{}", *digits / 1000, *digits % 1000 / 10);
  if (*digits >= 75) return fmt::format("{}.{}", *digits / 10, *digits % 10);
  return plain;
}

// CUDNN_VERSION: major*1000 + minor*100 + patch before cuDNN 9, major*10000 + minor*100 + patch since.
std::optional<std::string> cudnn_of(std::string_view text) {
  std::string plain(trim(text));
  std::erase_if(plain, [](char c) { return c == '(' || c == ')' || c == ' '; });
  std::replace(plain.begin(), plain.end(), ',', '.');
  const auto digits = to_integer(plain);
  if (!digits || *digits < 1000) return plain.empty() ? std::nullopt : std::optional(plain);
  const std::int64_t unit = *digits >= 90000 ? 10000 : 1000;
  return fmt::format("{}.{}.{}", *digits / unit, *digits % unit / 100, *digits % 100);
}

// "sm_120", "compute_89", "sm_121a", "8.6", "(8, 6)".
std::optional<std::string> capability_of(std::string_view text) {
  std::string plain(trim(text));
  if (plain.find('.') != std::string::npos) return plain;
  std::string digits;
  for (const char c : plain)
    if (c >= '0' && c <= '9') digits += c;
  if (digits.size() < 2 || digits.size() > 3) return std::nullopt;
  return fmt::format("{}.{}", std::string_view(digits).substr(0, digits.size() - 1), digits.back());
}

std::optional<std::string> place_of(std::string_view text) {
  std::string plain(trim(text));
  plain.erase(0, plain.find_last_of("/\\") + 1);
  for (const std::string_view between : {", line ", " line=", " line ", "\", line "})
    if (const std::size_t at = plain.find(between); at != std::string::npos) plain.replace(at, between.size(), ":");
  if (plain.empty()) return std::nullopt;
  return plain;
}

std::optional<std::string> held_by_of(std::string_view text) {
  const std::size_t has = text.find(" has ");
  if (has == std::string_view::npos) return std::nullopt;
  const auto pid = integer_of(text.substr(0, has));
  const auto bytes = bytes_of(text.substr(has + 5));
  if (!pid || !bytes) return std::nullopt;
  return *pid + ":" + *bytes;
}

}  // namespace

std::optional<FactType> fact_type_named(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (kTypes[i] == name) return static_cast<FactType>(i);
  return std::nullopt;
}

bool is_number(FactType type) {
  return type == FactType::bytes || type == FactType::integer || type == FactType::number;
}

std::optional<std::string> normalise(FactType type, std::string_view text) {
  switch (type) {
    case FactType::bytes:
      return bytes_of(text);
    case FactType::integer:
      return integer_of(text);
    case FactType::number:
      return number_of(text);
    case FactType::cuda:
      return cuda_of(text);
    case FactType::cudnn:
      return cudnn_of(text);
    case FactType::capability:
      return capability_of(text);
    case FactType::place:
      return place_of(text);
    case FactType::held_by:
      return held_by_of(text);
    case FactType::lower_text:
      return lower(trim(text));
    case FactType::version:
    case FactType::text:
      break;
  }
  const std::string_view plain = trim(text);
  if (plain.empty()) return std::nullopt;
  return std::string(plain);
}

int compare_versions(std::string_view left, std::string_view right) {
  const auto parts = [](std::string_view text) { return split(text.substr(0, text.find_first_of("+-")), '.'); };
  const auto a = parts(left), b = parts(right);
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::int64_t x = i < a.size() ? to_integer(a[i]).value_or(0) : 0;
    const std::int64_t y = i < b.size() ? to_integer(b[i]).value_or(0) : 0;
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

void Facts::add(const FactKind& kind, std::string value, bool rounded) {
  for (Fact& fact : facts_) {
    if (fact.kind->name != kind.name) continue;
    if (!kind.list && fact.rounded && !rounded) fact = {fact.kind, {std::move(value)}, false};
    if (!kind.list || fact.items.size() >= kMostItems) return;
    const bool known = std::find(fact.items.begin(), fact.items.end(), value) != fact.items.end();
    if (!known || kind.repeats) fact.items.push_back(std::move(value));
    return;
  }
  facts_.push_back({&kind, {std::move(value)}, rounded});
}

const Fact* Facts::find(std::string_view name) const {
  for (const Fact& fact : facts_)
    if (fact.kind->name == name) return &fact;
  return nullptr;
}

std::optional<double> Facts::number(std::string_view name) const {
  const Fact* fact = find(name);
  return fact == nullptr ? std::nullopt : to_number(fact->items.front());
}

std::optional<std::string> Facts::text(std::string_view name) const {
  const Fact* fact = find(name);
  if (fact == nullptr) return std::nullopt;
  return fmt::format("{}", fmt::join(fact->items, ","));
}

}  // namespace gpuwright
