#include "doctor/doctor.h"

#include <gtest/gtest.h>

#include <set>

#include "device/testing/tree.h"

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

}  // namespace
}  // namespace gpuwright::doctor
