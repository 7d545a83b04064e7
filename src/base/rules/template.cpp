#include "base/rules/template.h"

#include <fmt/format.h>

#include "base/quote.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwright {
namespace {

std::string for_people(const Fact& fact) {
  if (fact.kind->type == FactType::bytes && fact.items.size() == 1)
    return to_string(Bytes{to_integer(fact.items.front()).value_or(0)});
  return printable(fmt::format("{}", fmt::join(fact.items, ", ")));
}

// Fills in one part; false when a fact of it is unknown.
bool fill(std::string_view text, const Facts& facts, std::string& onto) {
  bool known = true;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t open = text.find('{', at);
    const std::size_t close = open == std::string_view::npos ? open : text.find('}', open);
    onto += text.substr(at, open - at);
    if (close == std::string_view::npos) {
      if (open != std::string_view::npos) onto += text.substr(open);
      return known;
    }
    const Fact* fact = facts.find(text.substr(open + 1, close - open - 1));
    known = known && fact != nullptr;
    onto += fact != nullptr ? for_people(*fact) : "?";
    at = close + 1;
  }
  return known;
}

}  // namespace

std::string filled(std::string_view text, const Facts& facts) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t open = text.find('[', at);
    const std::size_t close = open == std::string_view::npos ? open : text.find(']', open);
    if (close == std::string_view::npos) {
      fill(text.substr(at), facts, result);
      break;
    }
    fill(text.substr(at, open - at), facts, result);
    std::string part;
    if (fill(text.substr(open + 1, close - open - 1), facts, part)) result += part;
    at = close + 1;
  }
  return result;
}

std::string filled_command(std::string_view text, const Facts& facts) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t open = text.find('{', at);
    const std::size_t close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) break;
    const Fact* fact = facts.find(text.substr(open + 1, close - open - 1));
    result += text.substr(at, open - at);
    result +=
        fact != nullptr ? shell_word(printable(fact->items.front())) : std::string(text.substr(open, close + 1 - open));
    at = close + 1;
  }
  return result + std::string(text.substr(at));
}

}  // namespace gpuwright
