// Whole logs against what they mean. The cases are messages as the programs' sources format them.
#include "explain/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/text.h"

namespace gpuwright::explain {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const RuleBook& book() {
  static const RuleBook kBook = RuleBook::load().value();
  return kBook;
}

// Fed in pieces of `piece` bytes.
Explanation explained(std::string_view log, std::size_t piece = 1 << 20, const std::string& language = "en") {
  Scanner scanner(book());
  scanner.begin("log");
  for (std::size_t at = 0; at < log.size(); at += piece) scanner.feed(log.substr(at, piece));
  scanner.end();
  return explain(book(), scanner.scan(), {language, {}});
}

std::optional<std::string> fact(const Explanation& explanation, std::string_view name) {
  for (const FactValue& value : explanation.facts)
    if (value.name == name) return value.items.front();
  return std::nullopt;
}

std::vector<std::string> kinds(const Explanation& explanation) {
  std::vector<std::string> all;
  for (const Finding& finding : explanation.findings) all.push_back(finding.kind);
  return all;
}

struct Case {
  std::string kind, log;
};

std::vector<Case> cases() {
  std::ifstream file(std::string(GPUWRIGHT_SOURCE_DIR) + "/tests/explain/cases.txt");
  std::vector<Case> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("=== "))
      all.push_back({line.substr(4, line.find(' ', 4) - 4), ""});
    else if (!all.empty())
      all.back().log += line + "\n";
  }
  return all;
}

TEST(Explain, TellsEachMessage) {
  const auto all = cases();
  ASSERT_GT(all.size(), 50U);
  for (const Case& one : all) {
    const Explanation explanation = explained(one.log);
    const std::string first = one.kind.substr(0, one.kind.find('+'));
    EXPECT_EQ(verdict(explanation), first) << one.log;
    for (const std::string_view kind : split(one.kind, '+')) EXPECT_THAT(kinds(explanation), Contains(kind)) << one.log;
  }
}

// A message is the same whatever pieces it arrives in.
TEST(Explain, DoesNotDependOnPieces) {
  for (const Case& one : cases()) {
    const Explanation whole = explained(one.log), pieces = explained(one.log, 7);
    EXPECT_EQ(verdict(whole), verdict(pieces)) << one.log;
    EXPECT_EQ(whole.facts.size(), pieces.facts.size()) << one.log;
    EXPECT_EQ(whole.lines, pieces.lines) << one.log;
  }
}

TEST(Explain, RulesHaveNoFaults) {
  EXPECT_THAT(book().lint(), IsEmpty());
}

TEST(Explain, CountsLinesAndShowsWhere) {
  const Explanation explanation = explained("one\r\ntwo\n\x1b[31mRuntimeError: CUDA error: out of\x1b[0m memory\n");
  ASSERT_EQ(explanation.findings.front().kind, "oom.vram");
  EXPECT_EQ(explanation.findings.front().evidence.front().line, 3);
  EXPECT_EQ(explanation.lines, 3);
}

// torch 2.5 on a card with three processes: total - free - what this one has.
TEST(Explain, ComputesWhatOthersHold) {
  const Explanation explanation = explained(
      "CUDA out of memory. Tried to allocate 26.00 MiB. GPU 0 has a total capacity of 12.00 GiB of which 1.00 GiB is "
      "free. Process 77 has 618.00 MiB memory in use. Including non-PyTorch memory, this process has 9.00 GiB memory "
      "in "
      "use. Of the allocated memory 8.50 GiB is allocated by PyTorch, and 256.00 MiB is reserved by PyTorch but "
      "unallocated.");
  EXPECT_EQ(fact(explanation, "outside_bytes"), std::to_string(2LL << 30));
  EXPECT_EQ(fact(explanation, "nontorch_bytes"), std::to_string(256LL << 20));
  EXPECT_EQ(fact(explanation, "named_processes"), "77:" + std::to_string(618LL << 20));
}

TEST(Explain, IsNotFooledByHugeLines) {
  std::string log(3 << 20, 'x');
  log += "CUDA error: out of memory";
  log += std::string(3 << 20, 'y');
  EXPECT_EQ(verdict(explained(log)), "oom.vram");
}

TEST(Explain, SpeaksChinese) {
  const Explanation explanation = explained("RuntimeError: No CUDA GPUs are available\n", 1 << 20, "zh");
  EXPECT_THAT(explanation.findings.front().title, HasSubstr("看不到 GPU"));
}

// A command is there to be pasted: what a log holds stays a word in it.
TEST(Explain, QuotesWhatLogsPutIntoCommands) {
  const Explanation explanation =
      explained("NodeName=n1;reboot Arch=x86_64\n   Reason=gres/gpu count reported lower than configured (0 < 1)\n");
  ASSERT_EQ(explanation.findings.front().kind, "slurm.gres_count");
  std::string commands;
  for (const Fix& fix : explanation.findings.front().fixes)
    for (const std::string& command : fix.commands) commands += command + "\n";
  EXPECT_THAT(commands, HasSubstr("nodename='n1;reboot' state"));
}

// Escape sequences are taken out of a log; other control characters reach the facts, and are shown, never sent.
TEST(Explain, TextsHoldNoControlCharactersOfTheLog) {
  const Explanation explanation =
      explained("NodeName=n1\b\bx Arch=x86_64\n   Reason=gres/gpu count reported lower than configured (0 < 1)\n");
  ASSERT_EQ(explanation.findings.front().kind, "slurm.gres_count");
  EXPECT_THAT(explanation.findings.front().title, HasSubstr("n1\\x08\\x08x"));
  EXPECT_THAT(explanation.findings.front().title, Not(HasSubstr("\b")));
}

}  // namespace
}  // namespace gpuwright::explain
