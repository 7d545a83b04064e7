#include "base/json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json_reader.h"
#include "base/text.h"

namespace gpuwright {
namespace {

// Recursive over the reader's values, which the limits bound in number and depth. Python's json module writes and reads
// the bare words NaN, Infinity and -Infinity, so config.json files hold them (a rope scaling, a mask value): null.
class TreeBuilder {
 public:
  TreeBuilder(std::span<char> text, const JsonLimits& limits) : reader_(text), limits_(limits) {}

  // To be believed only where there is no failure().
  Json build() {
    Json tree = value(0);
    if (going() && reader_.ok() && !reader_.at_end()) failure_ = "something follows the value";
    return tree;
  }
  const char* failure() const { return reader_.ok() ? failure_ : reader_.reason(); }
  std::size_t position() const { return reader_.position(); }

 private:
  Json value(int depth) {
    if (++values_ > limits_.max_values || depth >= limits_.max_depth) {
      failure_ = depth >= limits_.max_depth ? "it is nested too deeply" : "it holds too many values";
      return {};
    }
    std::string_view text;
    switch (reader_.peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return reader_.string(text) ? Json(text) : Json();
      default:
        return scalar();
    }
  }

  Json object(int depth) {
    Json::Object members;
    std::string_view key;
    if (reader_.begin_object())
      while (going() && reader_.next_member(key)) members.emplace_back(key, value(depth + 1));
    return members;
  }

  Json array(int depth) {
    Json::Array items;
    if (reader_.begin_array())
      while (going() && reader_.next_item()) items.push_back(value(depth + 1));
    return items;
  }

  Json scalar() {
    std::int64_t whole = 0;
    double number = 0;
    if (reader_.integer(whole)) return whole;
    if (reader_.number(number)) return number;
    if (reader_.word("true")) return true;
    if (reader_.word("false")) return false;
    for (const std::string_view empty : {"null", "NaN", "Infinity", "-Infinity"})
      if (reader_.word(empty)) return {};
    failure_ = "a value is missing or out of range";
    return {};
  }

  bool going() const { return failure_ == nullptr; }

  JsonReader reader_;
  const JsonLimits& limits_;
  std::int64_t values_ = 0;
  const char* failure_ = nullptr;
};

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  out += '"';
}

std::string valid_utf8(std::string_view text) {
  return is_utf8(text) ? std::string(text) : printable(text);
}

}  // namespace

std::optional<bool> Json::as_bool() const {
  const bool* value = std::get_if<bool>(&value_);
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<std::int64_t> Json::as_int() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  if (const auto* value = std::get_if<double>(&value_))
    if (std::trunc(*value) == *value && std::abs(*value) < 9.0e15) return static_cast<std::int64_t>(*value);
  return std::nullopt;
}

std::optional<double> Json::as_double() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  return std::nullopt;
}

std::optional<std::string_view> Json::as_string() const {
  const auto* value = std::get_if<std::string>(&value_);
  return value ? std::optional<std::string_view>(*value) : std::nullopt;
}

const Json::Array& Json::items() const {
  static const Array kNone;
  const auto* value = std::get_if<Array>(&value_);
  return value ? *value : kNone;
}

const Json::Object& Json::members() const {
  static const Object kNone;
  const auto* value = std::get_if<Object>(&value_);
  return value ? *value : kNone;
}

const Json* Json::find(std::string_view key) const {
  for (const Member& member : members())
    if (member.first == key) return &member.second;
  return nullptr;
}

Json& Json::set(std::string_view key, Json value) {
  if (!is_object()) value_ = Object{};
  auto& object = std::get<Object>(value_);
  for (Member& member : object)
    if (member.first == key) return member.second = std::move(value), *this;
  object.emplace_back(std::string(key), std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  if (!is_array()) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

namespace {

void write(const Json& json, std::string& out, int indent, int level) {
  const auto line = [&](int depth) {
    if (indent > 0) out.append(1, '\n').append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
  };
  if (json.is_object() || json.is_array()) {
    const bool object = json.is_object();
    const std::size_t count = object ? json.members().size() : json.items().size();
    out += object ? '{' : '[';
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) out += indent > 0 ? "," : ", ";
      line(level + 1);
      if (object) {
        append_quoted(out, valid_utf8(json.members()[i].first));
        out += ": ";
      }
      write(object ? json.members()[i].second : json.items()[i], out, indent, level + 1);
    }
    if (count > 0) line(level);
    out += object ? '}' : ']';
  } else if (const auto text = json.as_string()) {
    append_quoted(out, valid_utf8(*text));
  } else if (const auto flag = json.as_bool()) {
    out += *flag ? "true" : "false";
  } else if (const auto number = json.as_double()) {
    const auto whole = json.as_int();
    out += whole ? std::to_string(*whole) : std::isfinite(*number) ? fmt::format("{}", *number) : "null";
  } else {
    out += "null";
  }
}

}  // namespace

std::string Json::dump(int indent) const {
  std::string out;
  write(*this, out, indent, 0);
  return out;
}

Result<Json> parse_json(std::string_view text, std::string_view name, const JsonLimits& limits) {
  const auto here = [&](std::string what) {
    return fail_at(ErrorCode::bad_input, {std::string(name), std::nullopt, std::nullopt}, std::move(what));
  };
  if (static_cast<std::int64_t>(text.size()) > limits.max_bytes)
    return here(
        fmt::format("the JSON document has {} bytes, more than the {} that are read", text.size(), limits.max_bytes));
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the byte order mark of Windows editors
  std::string copy(text);                                       // the reader writes into its text
  TreeBuilder builder(copy, limits);
  Json tree = builder.build();
  if (builder.failure() != nullptr)
    return here(fmt::format("not valid JSON: byte {}: {}", builder.position(), builder.failure()));
  return tree;
}

}  // namespace gpuwright
