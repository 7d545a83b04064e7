#include "report.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <array>
#include <ostream>

#include "base/text.h"
#include "predict.h"

namespace gpuwright::scorer {
namespace {

std::string bound(const std::optional<std::int64_t>& value) {
  return value ? fmt::to_string(*value) : "-";
}

}  // namespace

std::string row_line(const Row& row, const Prediction& prediction, const Score& score, std::optional<Group> group) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{:.5f}\t{:.5f}\t{}", printable(row.id), prediction.low,
                     prediction.expected, prediction.high, bound(row.measured.low), bound(row.measured.high),
                     score.error, score.band, group ? name_of(*group) : "-");
}

std::string group_line(Group group, const Summary& summary) {
  if (summary.rows == 0) return fmt::format("{} - - - 0", name_of(group));
  return fmt::format("{} {:.5f} {:.5f} {:.4f} {}", name_of(group), summary.median_error, summary.p90_error,
                     summary.coverage, summary.rows);
}

std::vector<Assessment> assess(const Table& table, const catalog::Catalog& catalog) {
  std::vector<Assessment> assessments;
  for (const Row& row : table.rows) {
    if (!row.marked_usable()) continue;
    Assessment assessment{&row, predict(row, catalog), group_of(row, is_llama_family(row)), {}};
    if (assessment.answer) assessment.score = score(assessment.answer->prediction, row.measured);
    assessments.push_back(std::move(assessment));
  }
  return assessments;
}

std::array<Summary, kGroups> summaries(const std::vector<Assessment>& assessments) {
  std::array<std::vector<Score>, kGroups> scores;
  for (const Assessment& assessment : assessments) {
    if (!assessment.answer) continue;
    if (assessment.group) scores[static_cast<std::size_t>(*assessment.group)].push_back(assessment.score);
    scores[static_cast<std::size_t>(Group::all)].push_back(assessment.score);
  }
  std::array<Summary, kGroups> all;
  for (std::size_t i = 0; i < kGroups; ++i) all[i] = summarize(scores[i]);
  return all;
}

void report(const Table& table, const catalog::Catalog& catalog, std::ostream& out, std::ostream& err) {
  std::size_t unmarked = 0, unpredicted = 0, scored = 0;
  for (const Refusal& refusal : table.refusals)
    fmt::print(err, "{}: {}\n", printable(refusal.id), printable(refusal.reason));
  for (const Row& row : table.rows) {
    if (row.marked_usable()) continue;
    ++unmarked;
    fmt::print(err, "{}: not marked usable\n", printable(row.id));
  }
  const std::vector<Assessment> assessments = assess(table, catalog);
  for (const auto& [row, answer, group, row_score] : assessments) {
    if (!answer) {
      ++unpredicted;
      fmt::print(err, "{}: {}\n", printable(row->id), answer.error().message());
      continue;
    }
    ++scored;
    for (const std::string& note : answer->notes)
      fmt::print(err, "{}: note: {}\n", printable(row->id), printable(note));
    fmt::print(out, "{}\n", row_line(*row, answer->prediction, row_score, group));
  }
  const std::array<Summary, kGroups> groups = summaries(assessments);
  for (std::size_t i = 0; i < kGroups; ++i) fmt::print(out, "{}\n", group_line(static_cast<Group>(i), groups[i]));
  fmt::print(err, "{} rows scored, {} usable but not predicted, {} not marked usable, {} malformed\n", scored,
             unpredicted, unmarked, table.refusals.size());
}

}  // namespace gpuwright::scorer
