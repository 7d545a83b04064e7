#include "base/quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace gpuwright {
namespace {

bool is_plain_key(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_';
  }) && std::isdigit(static_cast<unsigned char>(key.front())) == 0;
}

// as_int takes 4096.0 for 4096, which is what a reader of YAML or Python does with it too.
std::string scalar(const Json& value) {
  if (value.as_int()) return fmt::format("{}", *value.as_int());
  if (value.as_double()) return number_with_point(*value.as_double());
  return value.dump(0);
}

void append_yaml(const Json& value, std::size_t indent, std::string& into);

void append_member(std::string_view head, const Json& value, std::size_t indent, std::string& into) {
  into.append(indent, ' ');
  into += head;
  const bool nested = !value.members().empty() || !value.items().empty();
  if (nested) {
    into += '\n';
    append_yaml(value, indent + 2, into);
  } else {
    into += ' ' + scalar(value) + '\n';
  }
}

void append_yaml(const Json& value, std::size_t indent, std::string& into) {
  for (const auto& [key, child] : value.members())
    append_member((is_plain_key(key) ? key : Json(key).dump(0)) + ":", child, indent, into);
  for (const Json& item : value.items()) append_member("-", item, indent, into);
}

bool needs_no_quotes(std::string_view word) {
  constexpr std::string_view kSafe = "_-./:=,+@%";
  return !word.empty() && std::all_of(word.begin(), word.end(), [kSafe](unsigned char letter) {
    return (letter < 0x80 && std::isalnum(letter) != 0) || kSafe.find(static_cast<char>(letter)) != kSafe.npos;
  });
}

}  // namespace

std::string number_with_point(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find('.') != text.npos) return text;
  const std::size_t exponent = text.find('e');
  return exponent == text.npos ? text + ".0" : text.insert(exponent, ".0");
}

std::string yaml_from(const Json& object) {
  std::string text;
  append_yaml(object, 0, text);
  return text;
}

std::string shell_word(std::string_view word) {
  if (needs_no_quotes(word)) return std::string(word);
  std::string quoted = "'";
  for (const char letter : word) {
    if (letter == '\'')
      quoted += "'\\''";
    else
      quoted += letter;
  }
  return quoted + "'";
}

std::string shell_command(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool option = word.size() > 1 && word[0] == '-' && to_number(word) == std::nullopt;
    if (!text.empty()) text += option ? " \\\n  " : " ";
    text += shell_word(word);
  }
  return text;
}

std::string python_from(const Json& value) {
  if (value.is_null()) return "None";
  if (value.as_bool()) return *value.as_bool() ? "True" : "False";
  if (value.is_array()) {
    std::string text = "[";
    for (const Json& item : value.items()) text += (text.size() > 1 ? ", " : "") + python_from(item);
    return text + "]";
  }
  if (value.is_object()) {
    std::string text = "{";
    for (const auto& [key, child] : value.members())
      text += fmt::format("{}{}: {}", text.size() > 1 ? ", " : "", Json(key).dump(0), python_from(child));
    return text + "}";
  }
  return scalar(value);
}

}  // namespace gpuwright
