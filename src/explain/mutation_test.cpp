// Rules are about messages, not about logs: what surrounds a message, the size of the machine, the rank, the moment and
// the width of the terminal change nothing of the verdict.
#include <gtest/gtest.h>
#include <re2/re2.h>

#include <fstream>
#include <functional>

#include "base/text.h"
#include "explain/explain.h"

namespace gpuwright::explain {
namespace {

const RuleBook& book() {
  static const RuleBook kBook = RuleBook::load().value();
  return kBook;
}

std::string verdict_of(std::string_view log) {
  Scanner scanner(book());
  scanner.begin("log");
  scanner.feed(log);
  scanner.end();
  return verdict(explain(book(), scanner.scan(), {}));
}

std::vector<std::string> logs() {
  std::ifstream file(std::string(GPUWRIGHT_SOURCE_DIR) + "/tests/explain/cases.txt");
  std::vector<std::string> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("=== "))
      all.emplace_back();
    else if (!all.empty())
      all.back() += line + "\n";
  }
  return all;
}

std::string each_line(const std::string& log, const std::function<std::string(std::string_view)>& change) {
  std::string changed;
  for (const std::string_view line : split(trim(log), '\n')) changed += change(line) + "\n";
  return changed;
}

void expect_same(const std::function<std::string(const std::string&)>& mutate) {
  for (const std::string& log : logs()) {
    const std::string mutated = mutate(log);
    EXPECT_EQ(verdict_of(mutated), verdict_of(log)) << mutated;
  }
}

TEST(Mutation, UnrelatedLinesAround) {
  std::string before, after;
  for (int i = 0; i < 300; ++i) {
    before += "2026-11-30 12:00:00,123 INFO trainer.py:214 step " + std::to_string(i) + " lr 1.0e-04 tokens/s 11873\n";
    after += "INFO saving state, shard " + std::to_string(i) + " of 300\n";
  }
  // (A healthy log stays healthy, and one that nobody knows stays unknown.)
  expect_same([&](const std::string& log) { return before + log + after; });
}

TEST(Mutation, PrefixesOfRanksAndTimes) {
  expect_same([](const std::string& log) {
    return each_line(log, [](std::string_view line) { return "[rank5]: " + std::string(line); });
  });
  expect_same([](const std::string& log) {
    return each_line(log,
                     [](std::string_view line) { return "2026-11-30T12:00:00.000Z stderr F " + std::string(line); });
  });
}

TEST(Mutation, ColoursAndLineEnds) {
  expect_same([](const std::string& log) {
    return each_line(log, [](std::string_view line) { return "\x1b[31m" + std::string(line) + "\x1b[0m\r"; });
  });
}

// Another card, another batch: every size of a message doubled keeps the relations between them.
TEST(Mutation, SizesScaledTogether) {
  expect_same([](const std::string& log) {
    if (log.find("GiB") == std::string::npos || log.find("max seq len") != std::string::npos) return log;
    static const re2::RE2 kSize(R"((\d+(?:\.\d+)?) ?(GiB|MiB))");
    std::string changed;
    re2::StringPiece rest(log), number, unit;
    re2::StringPiece groups[3];
    while (kSize.Match(rest, 0, rest.size(), re2::RE2::UNANCHORED, groups, 3)) {
      changed.append(rest.data(), static_cast<std::size_t>(groups[0].data() - rest.data()));
      const double half = to_number(std::string_view(groups[1].data(), groups[1].size())).value() / 2;
      changed += std::to_string(half) + " " + std::string(groups[2].data(), groups[2].size());
      rest.remove_prefix(static_cast<std::size_t>(groups[0].data() + groups[0].size() - rest.data()));
    }
    return changed + std::string(rest.data(), rest.size());
  });
}

// A terminal or a log viewer broke long lines at blanks.
TEST(Mutation, WrappedAtBlanks) {
  expect_same([](const std::string& log) {
    return each_line(log, [](std::string_view line) {
      std::string wrapped;
      std::size_t width = 0;
      for (const char c : line) {
        const bool at_blank = c == ' ' && width >= 90;
        wrapped += at_blank ? '\n' : c;
        width = at_blank ? 0 : width + 1;
      }
      return wrapped;
    });
  });
}

// Another rank's progress between any two lines.
TEST(Mutation, InterleavedWithAnotherRank) {
  expect_same([](const std::string& log) {
    return each_line(log,
                     [](std::string_view line) { return std::string(line) + "\n[rank7]: step 12 tokens/s 11873"; });
  });
}

}  // namespace
}  // namespace gpuwright::explain
