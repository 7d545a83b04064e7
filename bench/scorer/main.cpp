// bench/accuracy FILE.tsv: how near gpuwright's predictions come to published measurements (docs/accuracy.md).
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "catalog/catalog.h"
#include "predict.h"
#include "report.h"

namespace gpuwright::scorer {
namespace {

constexpr std::string_view kUsage =
    "usage: accuracy FILE.tsv            score every row, a line each, then a line a group\n"
    "       accuracy FILE.tsv --explain ID   the whole estimate behind one row\n";

int complain(const Error& error) {
  fmt::print(std::cerr, "accuracy: {}\n", error.message());
  return error.code == ErrorCode::internal ? 4 : 2;
}

int explain_row(const Table& table, const catalog::Catalog& catalog, std::string_view id) {
  for (const Row& row : table.rows) {
    if (row.id != id) continue;
    const auto text = explain(row, catalog);
    if (!text) return complain(text.error());
    fmt::print(std::cout, "{}", *text);
    return 0;
  }
  return complain({ErrorCode::not_found, fmt::format("no row has the id \"{}\"", id), {}, {}});
}

int run(const std::vector<std::string_view>& arguments) {
  const bool explains = arguments.size() == 3 && arguments[1] == "--explain";
  if (arguments.size() == 1 && (arguments[0] == "--help" || arguments[0] == "-h")) {
    fmt::print(std::cout, "{}", kUsage);
    return 0;
  }
  if (arguments.size() != 1 && !explains) {
    fmt::print(std::cerr, "{}", kUsage);
    return 2;
  }
  const auto file = open_file(std::string(arguments[0]));
  if (!file) return complain(file.error());
  const auto table = read_table(**file);
  if (!table) return complain(table.error());
  const auto catalog = catalog::Catalog::load();
  if (!catalog) return complain(catalog.error());
  if (explains) return explain_row(*table, *catalog, arguments[2]);
  report(*table, *catalog, std::cout, std::cerr);
  return 0;
}

}  // namespace
}  // namespace gpuwright::scorer

int main(int argc, char** argv) {
  try {
    return gpuwright::scorer::run(std::vector<std::string_view>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    return 4;
  }
}
