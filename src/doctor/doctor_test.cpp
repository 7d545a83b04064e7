#include "doctor/doctor.h"

#include <gtest/gtest.h>
#include <re2/re2.h>

#include <filesystem>
#include <set>

#include "base/file.h"

namespace gpuwright::doctor {
namespace {

TEST(Doctor, EveryCheckHasItsOwnIdAndItsProblemsHaveTexts) {
  std::set<std::string_view> ids;
  for (const Check& check : all_checks()) EXPECT_TRUE(ids.insert(check.id).second) << check.id;
  const auto book = ProblemBook::load();
  ASSERT_TRUE(book) << book.error().message();
  for (const auto& problem : book->problems()) {
    EXPECT_FALSE(problem->title.en.empty()) << problem->id;
    EXPECT_FALSE(problem->title.zh.empty()) << problem->id;
    EXPECT_FALSE(problem->cause.en.empty()) << problem->id;
    EXPECT_FALSE(problem->cause.zh.empty()) << problem->id;
  }
}

// A problem without a row would not be said at all.
TEST(Doctor, EveryProblemThatTheChecksNameHasARow) {
  const auto book = ProblemBook::load();
  ASSERT_TRUE(book) << book.error().message();
  const std::string folder = std::string(GPUWRIGHT_SOURCE_DIR) + "/src/doctor/checks";
  const re2::RE2 id(R"re("((?:pci|kmod|drv|dev|fab|hw|sys|ct|amd|intel|nccl|k8s|slurm|perf)\.[a-z_0-9]+)")re");
  std::set<std::string> checks;
  for (const Check& check : all_checks()) checks.emplace(check.id);
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto text = read_file(entry.path().string(), 1 << 20);
    ASSERT_TRUE(text);
    re2::StringPiece rest(*text);
    for (std::string name; re2::RE2::FindAndConsume(&rest, id, &name);) {
      if (name == "slurm.conf" || checks.contains(name)) continue;
      ++seen;
      EXPECT_NE(book->find(name), nullptr) << name << " in " << entry.path().filename();
    }
  }
  EXPECT_GT(seen, 50);
}

TEST(ProblemBook, SaysWhereAFileIsWrong) {
  for (const char* text :
       {"[[problem]]\nid = 'x'", "[[problem]]\nid = 'x'\nseverity = 'awful'\nscope = 'host'",
        "[[problem]]\nid = 'x'\nseverity = 'info'\nscope = 'host'\n[[problem.fix]]\nwhen = 'a and'",
        "[[problem]]\nid = 'x'\nseverity = 'info'\nscope = 'host'\n[[problem.fix]]\ncommands = '@none'",
        "[[problem]]\nid = 'x'\nseverity = 'info'\nscope = 'host'\n[[problem.fix]]\ncommands = {beos = []}", "= ="}) {
    ProblemBook book;
    const Status status = book.add(text, "mine.toml");
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().where.file, "mine.toml");
  }
}

}  // namespace
}  // namespace gpuwright::doctor
