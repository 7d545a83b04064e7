// The scorer's output. On `out` one line a scored row,
//   id low expected high measured_low measured_high error band group       (tab separated; "-" for an open bound)
// and last one line a group, `GROUP median_error p90_error coverage rows` (blank separated; "-" where empty).
// On `err` one line a row that was not scored, `id: reason`, notes on how a model was resolved, and a count.
#pragma once

#include <array>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "predict.h"
#include "row.h"
#include "score.h"

namespace gpuwright::scorer {

struct Assessment {
  const Row* row = nullptr;
  Result<Answer> answer;
  std::optional<Group> group;
  Score score;  // when there is an answer
};
// One for each row that is marked usable, in the table's order. The table must outlive it.
std::vector<Assessment> assess(const Table& table, const catalog::Catalog& catalog);
std::array<Summary, kGroups> summaries(const std::vector<Assessment>& assessments);

std::string row_line(const Row& row, const Prediction& prediction, const Score& score, std::optional<Group> group);
std::string group_line(Group group, const Summary& summary);

void report(const Table& table, const catalog::Catalog& catalog, std::ostream& out, std::ostream& err);

}  // namespace gpuwright::scorer
