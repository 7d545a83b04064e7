// explain DIR: reads DIR/index.tsv (columns file, kind, also_ok, scored, facts) and scores what explain says of each
// log beside it. A line a log on stdout; the last lines are `top RIGHT TOTAL`, `pairs RIGHT TOTAL`, `facts RIGHT TOTAL`
// and `false-gpu N`. A kind "a+b" is a pair: top wants a or b as first cause, pairs wants both.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "catalog/catalog.h"
#include "explain/explain.h"
#include "explain/lookup.h"

namespace {

using namespace gpuwright;

struct Row {
  std::string file, kind, also_ok, scored, facts;
};

struct Score {
  int top = 0, tops = 0, pairs = 0, all_pairs = 0, facts = 0, all_facts = 0, false_gpu = 0;
};

Result<std::vector<Row>> read_index(const std::string& directory) {
  const std::string text = GW_TRY(read_file(directory + "/index.tsv", 16 << 20));
  std::vector<Row> rows;
  std::map<std::string, std::size_t, std::less<>> column;
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    const auto cells = split(line, '\t');
    if (column.empty()) {
      for (std::size_t i = 0; i < cells.size(); ++i) column.emplace(cells[i], i);
      for (const char* name : {"file", "kind", "also_ok", "scored", "facts"})
        if (!column.contains(name)) return fail(ErrorCode::bad_input, fmt::format("index.tsv has no column {}", name));
      continue;
    }
    const auto cell = [&](std::string_view name) {
      const std::size_t i = column.find(name)->second;
      return i < cells.size() ? std::string(trim(cells[i])) : std::string();
    };
    rows.push_back({cell("file"), cell("kind"), cell("also_ok"), cell("scored"), cell("facts")});
  }
  return rows;
}

// Computed amounts come from rounded ones: two hundredths of the largest unit in the message, at most a GiB.
bool same_number(const std::string& fact, double wanted, double found) {
  static const std::vector<std::string> kComputed = {"outside_bytes", "shortfall_bytes", "nontorch_bytes",
                                                     "reserved_unallocated_bytes"};
  const bool computed = std::find(kComputed.begin(), kComputed.end(), fact) != kComputed.end();
  const double slack = computed ? 0.02 * 1073741824.0 : std::max(1.0, std::abs(wanted) * 1e-6);
  return std::abs(wanted - found) <= slack;
}

bool same_fact(const std::string& name, std::string_view wanted, const FactValue* found) {
  if (found == nullptr) return false;
  const auto items = split(wanted, ',');
  const std::string joined = fmt::format("{}", fmt::join(found->items, ","));
  if (joined == wanted) return true;
  if (items.size() != found->items.size()) return false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto a = to_number(items[i]), b = to_number(found->items[i]);
    if (!(a && b ? same_number(name, *a, *b) : lower(trim(items[i])) == lower(trim(found->items[i])))) return false;
  }
  return true;
}

std::vector<std::string> alternatives(const Row& row) {
  std::vector<std::string> all = {row.kind};
  for (const std::string_view item : split(row.also_ok, ','))
    if (!trim(item).empty()) all.emplace_back(trim(item));
  return all;
}

bool is_quiet(std::string_view kind) {
  return kind.starts_with("benign.") || kind == "healthy" || kind.starts_with("not_gpu.") || kind == "oom.host";
}

void score_row(const Row& row, const explain::Explanation& explanation, Score& score) {
  std::vector<std::string> kinds;
  for (const Finding& finding : explanation.findings) kinds.push_back(finding.kind);
  const std::string verdict = explain::verdict(explanation);
  const std::string first = verdict.substr(0, verdict.find('+'));
  const auto all = alternatives(row);
  const bool top = std::any_of(all.begin(), all.end(), [&](const std::string& kind) {
    const auto parts = split(kind, '+');
    return std::find(parts.begin(), parts.end(), first) != parts.end();
  });
  const bool scored = row.scored == "yes";
  score.top += scored && top;
  score.tops += scored;
  std::string notes;
  if (const auto parts = split(row.kind, '+'); scored && parts.size() > 1) {
    const bool both = std::all_of(parts.begin(), parts.end(), [&](std::string_view kind) {
      return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    });
    score.pairs += both;
    ++score.all_pairs;
    if (!both) notes += " pair";
  }
  for (const std::string_view item : split(row.facts, ';')) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || !scored) continue;
    const std::string name(trim(item.substr(0, equals)));
    const std::string_view wanted = trim(item.substr(equals + 1));
    const auto found = std::find_if(explanation.facts.begin(), explanation.facts.end(),
                                    [&](const FactValue& fact) { return fact.name == name; });
    const FactValue* fact = found == explanation.facts.end() ? nullptr : &*found;
    const bool same = same_fact(name, wanted, fact);
    score.facts += same;
    ++score.all_facts;
    if (!same)
      notes += fmt::format(" {}={}!={}", name, fact ? fmt::format("{}", fmt::join(fact->items, ",")) : "-", wanted);
  }
  if (is_quiet(row.kind.substr(0, row.kind.find('+'))))
    for (const Finding& finding : explanation.findings)
      if (finding.scope == Scope::gpu && finding.severity >= Severity::warning)
        ++score.false_gpu, notes += " false-gpu";
  fmt::print("{}\t{}\t{}\t{}\t{}\n", row.file, row.kind, fmt::format("{}", fmt::join(kinds, "+")),
             !scored ? "unscored"
             : top   ? "right"
                     : "WRONG",
             printable(notes));
}

Result<int> run(const std::string& directory) {
  const auto rows = GW_TRY(read_index(directory));
  const explain::RuleBook book = GW_TRY(explain::RuleBook::load());
  const catalog::Catalog gpus = GW_TRY(catalog::Catalog::load());
  explain::ExplainOptions options;
  options.lookup = explain::lookup_in(gpus);
  Score score;
  for (const Row& row : rows) {
    const std::string text = GW_TRY(read_file(directory + "/" + row.file, 64 << 20));
    explain::Scanner scanner(book);
    scanner.begin(row.file);
    scanner.feed(text);
    scanner.end();
    score_row(row, explain::explain(book, scanner.scan(), options), score);
  }
  fmt::print("top {} {}\npairs {} {}\nfacts {} {}\nfalse-gpu {}\n", score.top, score.tops, score.pairs, score.all_pairs,
             score.facts, score.all_facts, score.false_gpu);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    fmt::print(stderr, "usage: bench/explain DIR   (a folder of logs with an index.tsv)\n");
    return 2;
  }
  const auto code = run(words[1]);
  if (!code) fmt::print(stderr, "bench/explain: {}\n", code.error().message());
  return code ? *code : 3;
}
