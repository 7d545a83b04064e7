#include "fit/strategy/constants.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include <toml++/toml.h>
#include "base/embedded.h"

namespace gpuwright::fit::strategy {
namespace {

using Constants = std::map<std::string, Constant, std::less<>>;

Result<Constants> read() {
  Constants constants;
  try {
    const toml::table file =
        toml::parse(embedded_data("strategy.toml").value_or(""), std::string_view("strategy.toml"));
    const toml::array* rows = file["constant"].as_array();
    for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
      const toml::table* row = rows->get(i)->as_table();
      if (row == nullptr) continue;
      const auto number = [&](std::string_view key) { return (*row)[key].value<double>(); };
      const auto low = number("low"), expected = number("expected"), high = number("high");
      const std::string source = (*row)["source"].value_or(std::string());
      if (!low || !expected || !high || *low > *expected || *expected > *high || *low <= 0 || source.empty())
        return fail(ErrorCode::internal,
                    "data/strategy.toml: a constant needs 0 < low <= expected <= high and a source");
      constants[(*row)["name"].value_or(std::string())] = {*low, *expected, *high, source};
    }
  } catch (const toml::parse_error& error) {
    return fail(ErrorCode::internal, fmt::format("data/strategy.toml: {}", error.description()));
  }
  return constants;
}

}  // namespace

Result<Constant> constant(std::string_view name) {
  static const Result<Constants> constants = read();
  if (!constants) return tl::unexpected(constants.error());
  const auto found = constants->find(name);
  if (found == constants->end())
    return fail(ErrorCode::internal, fmt::format("data/strategy.toml has no constant \"{}\"", name));
  return found->second;
}

}  // namespace gpuwright::fit::strategy
