#include "fit/training/constants.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <mutex>
#include <string>
#include <vector>

#include "base/embedded.h"
#include "base/text.h"

namespace gpuwright::fit::training {
namespace {

constexpr std::string_view kFile = "training.toml";

struct Row {
  std::string name, engine, architecture;
  Constant value;
};

Result<Row> read_row(const toml::table& table, std::uint32_t line) {
  const auto text = [&](std::string_view key) { return table[key].value_or(std::string()); };
  const auto number = [&](std::string_view key) { return table[key].value<double>(); };
  const auto low = number("low"), expected = number("expected"), high = number("high");
  if (!low || !expected || !high || *low > *expected || *expected > *high || text("source").empty())
    return fail_at(ErrorCode::internal, {std::string(kFile), line, std::nullopt},
                   "a constant needs low <= expected <= high and a source");
  return Row{text("name"), text("engine"), text("architecture"), {*low, *expected, *high, text("source")}};
}

Result<std::vector<Row>> read_rows() {
  const auto text = embedded_data(kFile);
  if (!text) return fail(ErrorCode::internal, fmt::format("data/{} is not built in", kFile));
  std::vector<Row> rows;
  try {
    const toml::table file = toml::parse(*text, kFile);
    const toml::array* constants = file["constant"].as_array();
    for (std::size_t i = 0; constants != nullptr && i < constants->size(); ++i)
      if (const toml::table* table = constants->get(i)->as_table())
        rows.push_back(GW_TRY(read_row(*table, table->source().begin.line)));
  } catch (const toml::parse_error& error) {
    return fail_at(ErrorCode::internal, {std::string(kFile), error.source().begin.line, std::nullopt},
                   std::string(error.description()));
  }
  return rows;
}

// "Ada" names "Ada Lovelace", as the catalogue writes it.
bool is_architecture(std::string_view row, std::string_view wanted) {
  return row.empty() || starts_with_ignoring_case(wanted, row);
}

}  // namespace

Result<Constant> constant(std::string_view name, std::string_view engine, std::string_view architecture) {
  static const Result<std::vector<Row>> kRows = read_rows();
  if (!kRows) return tl::unexpected(kRows.error());
  const Row* best = nullptr;
  int best_rank = -1;
  for (const Row& row : *kRows) {
    if (row.name != name || (!row.engine.empty() && row.engine != engine)) continue;
    if (!is_architecture(row.architecture, architecture)) continue;
    const int rank = (row.engine.empty() ? 0 : 1) + (row.architecture.empty() ? 0 : 2);
    if (rank > best_rank) best = &row, best_rank = rank;
  }
  if (best == nullptr) return fail(ErrorCode::internal, fmt::format("data/{} has no constant \"{}\"", kFile, name));
  return best->value;
}

}  // namespace gpuwright::fit::training
