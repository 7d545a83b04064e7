#include "base/json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cmath>

#include "base/text.h"

namespace gpuwright {
namespace {

namespace dom = simdjson::dom;

struct Budget {
  std::int64_t values_left;
};

Result<Json> convert(const dom::element& element, Budget& budget) {
  if (--budget.values_left < 0) return fail(ErrorCode::bad_input, "the JSON document holds too many values");
  switch (element.type()) {
    case dom::element_type::ARRAY: {
      Json::Array items;
      const dom::array children = element.get_array().value_unsafe();
      for (const dom::element& child : children) items.push_back(GW_TRY(convert(child, budget)));
      return Json(std::move(items));
    }
    case dom::element_type::OBJECT: {
      Json::Object members;
      const dom::object children = element.get_object().value_unsafe();
      for (const auto& [key, child] : children) members.emplace_back(std::string(key), GW_TRY(convert(child, budget)));
      return Json(std::move(members));
    }
    case dom::element_type::INT64:
      return Json(element.get_int64().value_unsafe());
    case dom::element_type::UINT64:
      return Json(static_cast<double>(element.get_uint64().value_unsafe()));
    case dom::element_type::DOUBLE:
      return Json(element.get_double().value_unsafe());
    case dom::element_type::STRING:
      return Json(element.get_string().value_unsafe());
    case dom::element_type::BOOL:
      return Json(element.get_bool().value_unsafe());
    case dom::element_type::NULL_VALUE:
      break;
  }
  return Json();
}

// Python's json module writes and reads the bare words NaN, Infinity and -Infinity, so config.json files hold them
// (a rope scaling, a mask value). They are not JSON; each becomes null, padded with blanks so that offsets stay true.
std::optional<std::string> without_python_numbers(std::string_view text) {
  std::optional<std::string> copy;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (in_string && text[at] == '\\') {
      ++at;
      continue;
    }
    if (text[at] == '"') in_string = !in_string;
    if (in_string) continue;
    for (const std::string_view word :
         {std::string_view("NaN"), std::string_view("-Infinity"), std::string_view("Infinity")}) {
      if (text.substr(at, word.size()) != word) continue;
      if (!copy) copy = std::string(text);
      std::string replacement = "null";
      replacement.resize(std::max<std::size_t>(word.size(), 4), ' ');
      // "NaN" is one byte short of "null": 0e0 would change its meaning, so the copy grows by one byte.
      copy->replace(at + (copy->size() - text.size()), word.size(), replacement);
      at += word.size() - 1;
      break;
    }
  }
  return copy;
}

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
  if (simdjson::validate_utf8(text.data(), text.size())) return std::string(text);
  return printable(text);
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
  const auto cleaned = without_python_numbers(text);
  dom::parser parser;
  if (parser.allocate(text.size() + 64, static_cast<std::size_t>(limits.max_depth)) != simdjson::SUCCESS)
    return fail(ErrorCode::internal, "no memory to parse a JSON document");
  const simdjson::padded_string padded(cleaned ? std::string_view(*cleaned) : text);
  dom::element root;
  if (const auto error = parser.parse(padded).get(root); error != simdjson::SUCCESS)
    return here(fmt::format("not valid JSON: {}", simdjson::error_message(error)));
  Budget budget{limits.max_values};
  auto tree = convert(root, budget);
  if (!tree) tree.error().where.file = name;
  return tree;
}

}  // namespace gpuwright
