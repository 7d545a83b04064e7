#include <fmt/format.h>

#include "base/text.h"
#include "cli/command.h"

namespace gpuwright::cli {
namespace {

std::string plain(double value) {
  return fmt::format("{}", value);
}
std::string plain(std::int64_t value) {
  return fmt::format("{}", value);
}

template <class Number>
Result<std::optional<Number>> within(std::string_view name, const std::string& text, std::optional<Number> number,
                                     Number low, Number high, std::string_view kind) {
  if (!number)
    return fail(ErrorCode::bad_input, fmt::format("{} takes {}, not '{}'", name, kind, text),
                fmt::format("from {} to {}", plain(low), plain(high)));
  if (*number < low || *number > high)
    return fail(ErrorCode::bad_input,
                fmt::format("{} takes {} from {} to {}, not {}", name, kind, plain(low), plain(high), text));
  return number;
}

// "8192", or "8k" as people write contexts.
std::optional<std::int64_t> whole_number(std::string_view text) {
  const bool kilo = text.size() > 1 && (text.back() == 'k' || text.back() == 'K');
  const auto value = to_integer(kilo ? text.substr(0, text.size() - 1) : text);
  if (!value || !kilo) return value;
  return *value <= (std::int64_t{1} << 40) && *value >= 0 ? std::optional(*value * 1024) : std::nullopt;
}

}  // namespace

bool Arguments::has(std::string_view name) const {
  return values_.find(name) != values_.end();
}

std::optional<std::string> Arguments::value(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second.back();
}

std::vector<std::string> Arguments::values(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

Result<std::optional<std::int64_t>> Arguments::integer(std::string_view name, std::int64_t low,
                                                       std::int64_t high) const {
  const auto text = value(name);
  if (!text) return std::optional<std::int64_t>{};
  return within<std::int64_t>(name, *text, whole_number(*text), low, high, "a whole number");
}

Result<std::optional<double>> Arguments::number(std::string_view name, double low, double high) const {
  const auto text = value(name);
  if (!text) return std::optional<double>{};
  return within<double>(name, *text, to_number(*text), low, high, "a number");
}

void Arguments::add(std::string_view name, std::string value) {
  values_[std::string(name)].push_back(std::move(value));
}

void Arguments::remove(std::string_view name) {
  if (const auto found = values_.find(name); found != values_.end()) values_.erase(found);
}

void Arguments::mark(std::string_view name) {
  values_[std::string(name)];
}

}  // namespace gpuwright::cli
